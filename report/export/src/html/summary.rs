//! The summary: probes, what is unusual, arguments and processes.

use usdtrec_analysis::heatmap::HeatMap;
use usdtrec_analysis::overview::Overview;
use usdtrec_analysis::overview::numbers::NumberOverview;
use usdtrec_analysis::rate::Rates;
use usdtrec_analysis::stats::ratio::per_second;
use usdtrec_analysis::stats::timeline::Timeline;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, ProbeFacts, Spread};
use usdtrec_format::escape::quote;
use usdtrec_trace::session::event_name::short_name as short;
use usdtrec_view::hints::HintWords;
use usdtrec_view::measured::{form, measured};
use usdtrec_view::numbers::{percent, rate};
use usdtrec_view::report::arguments::holds;
use usdtrec_view::report::probes::{processes, silent};
use usdtrec_view::report::short_names::ShortNames;
use usdtrec_view::sentences::Sentences;
use usdtrec_view::text::scalar;

use crate::html::heat::{ShadeMap, ShadeRow};
use crate::html::histogram;
use crate::html::markup::{Markup, shortened};
use crate::html::notes::put_notes;
use crate::html::table::{HtmlCell, HtmlColumn, HtmlTable};

/// Room for the rows of tables, bytes.
const ROOM: usize = 64 << 10;
const ROOM_OF_PROCESSES: usize = 24 << 10;
const ROOM_OF_VALUES: usize = 8 << 10;
const ROOM_OF_ALL_VALUES: usize = 100 << 10;
/// Values of an argument that are listed.
const MAX_VALUES: usize = 40;
/// Heat maps of arguments.
const MAX_MAPS: usize = 4;
/// Processes that are listed.
const MAX_PROCESSES: usize = 50;

/// Appends the table of probes.
pub(crate) fn put_probes(facts: &SummaryFacts, out: &mut Markup) {
    let names = ["Event", "Events", "/s", "Share", "Lost", "Processes"];
    let mut columns = HtmlColumn::all(&names, 1);
    if let Some(last) = columns.last_mut() {
        last.is_number = false;
    }
    let mut table = HtmlTable::new("data probes", columns, ROOM);
    let has_hits = |probe: &&ProbeFacts| probe.count > 0 || probe.lost > 0;
    for probe in facts.probes.iter().filter(has_hits) {
        let lost = facts.losses.known(probe.lost);
        let mut row = vec![
            HtmlCell::Code(short(&probe.event).to_owned()),
            HtmlCell::count(probe.count),
        ];
        row.extend(rates_cells(probe.count, facts));
        row.push(lost.map_or(HtmlCell::NoNumber("?"), HtmlCell::count));
        let names = processes(&probe.processes, probe.other_processes > 0);
        row.push(HtmlCell::Text(names));
        table.row(&row);
    }
    if !table.is_empty() {
        table.put(out);
    }
    put_notes("note", silent(facts), out);
    let reasons = facts.reasons.sentences(HintWords::default());
    put_notes("note", reasons, out);
}

/// The rate and the share of so many events.
fn rates_cells(count: u64, facts: &SummaryFacts) -> [HtmlCell; 2] {
    let duration = facts.duration_for(count);
    let per_second = match per_second(count, duration) {
        Some(number) => HtmlCell::number(rate(count, duration), number),
        None => HtmlCell::NoNumber("-"),
    };
    [
        per_second,
        HtmlCell::number(percent(count, facts.events), count),
    ]
}

/// Appends events over time.
pub(crate) fn put_rates(facts: &SummaryFacts, rates: &Rates, out: &mut Markup) {
    let names = ShortNames::new(facts);
    let series = rates.series.iter();
    let series = series.filter(|series| series.counts.iter().any(|&count| count > 0));
    let rows = series.map(|series| ShadeRow {
        label: names
            .of(series.event.as_deref().unwrap_or_default())
            .to_owned(),
        until: None,
        counts: &series.counts,
    });
    let map = ShadeMap {
        rows: rows.collect(),
        timeline: rates.timeline,
        unit: "events",
        of_rows: "probes",
    };
    map.put(out);
}

/// Appends what arguments hold.
pub(crate) fn put_arguments(facts: &SummaryFacts, out: &mut Markup) {
    let names = ["Argument", "Type", "What it holds"];
    let mut table = HtmlTable::new("data arguments", HtmlColumn::all(&names, names.len()), ROOM);
    let mut values = Markup::default();
    let mut left_out = 0;
    for probe in facts.probes.iter().filter(|probe| probe.count > 0) {
        for argument in &probe.arguments {
            let name = format!("{}.{}", short(&probe.event), argument.name);
            let kind = match &argument.unit {
                Some(unit) => format!("{} {unit}", argument.kind),
                None => argument.kind.clone(),
            };
            table.row(&[
                HtmlCell::Code(name.clone()),
                HtmlCell::Text(kind),
                HtmlCell::Text(holds(argument, true)),
            ]);
            let next = values_of(&name, argument);
            match values.len() + next.len() > ROOM_OF_ALL_VALUES {
                true => left_out += 1,
                false => drop(values.append(&next)),
            }
        }
    }
    if table.is_empty() {
        return;
    }
    out.tag("<section id=\"arguments\"><h2>Arguments</h2>\n");
    table.put(out);
    out.append(&values);
    if left_out > 0 {
        let words = format!("values of {left_out} more arguments left out here");
        put_notes("note", [words], out);
    }
    out.tag("</section>\n");
}

/// The values of an argument with their counts, to be opened.
fn values_of(name: &str, argument: &ArgumentFacts) -> Markup {
    let mut out = Markup::default();
    let names = ["Value", "Events", "Share"];
    let mut table = HtmlTable::new("data values", HtmlColumn::all(&names, 1), ROOM_OF_VALUES);
    let spreads = [&argument.integers, &argument.floats];
    for spread in spreads.into_iter().flatten() {
        put_numbers(spread, argument, &mut table);
    }
    if let Some(texts) = &argument.texts {
        for text in texts.values.iter().take(MAX_VALUES) {
            let mut shown = String::new();
            match argument.form.readable_text(&text.value) {
                Some(name) => quote(&mut shown, name.as_bytes()),
                None => quote(&mut shown, &text.value),
            }
            table.row(&[
                HtmlCell::Code(shown),
                HtmlCell::count(text.count),
                HtmlCell::number(percent(text.count, texts.count), text.count),
            ]);
        }
        table.leave_out(texts.different.saturating_sub(MAX_VALUES));
    }
    if !table.is_empty() {
        out.tag("<details class=\"values\"><summary>Values of <code>")
            .text(&shortened(name, 200))
            .tag("</code></summary>\n");
        table.put(&mut out);
        out.tag("</details>\n");
    }
    out
}

fn put_numbers(spread: &Spread, argument: &ArgumentFacts, table: &mut HtmlTable) {
    let values = spread.values.as_deref().unwrap_or_default();
    let form = argument.form.clone().human(true);
    for number in values.iter().take(MAX_VALUES) {
        let shown = scalar::shown(number.value, &form);
        table.row(&[
            HtmlCell::Code(shown),
            HtmlCell::count(number.count),
            HtmlCell::number(percent(number.count, spread.count), number.count),
        ]);
    }
    table.leave_out(values.len().saturating_sub(MAX_VALUES));
}

/// Appends the distributions of arguments.
pub(crate) fn put_numbers_over_time(all: &[NumberOverview], out: &mut Markup) {
    let maps = || {
        let maps = all.iter().flat_map(|numbers| {
            let maps = numbers.heat.all.iter();
            maps.map(move |map| (numbers, map))
        });
        maps.filter(|(_, map)| map.count > 0)
    };
    for (numbers, map) in maps().take(MAX_MAPS) {
        let name = measured(&map.of, true);
        out.tag("<section class=\"argument\"><h2>Argument <code>")
            .text(&shortened(&name, 200))
            .tag("</code></h2>\n<h3>Values over time</h3>\n");
        put_map(map, numbers.heat.timeline, out);
        let histograms = numbers.histograms.all.iter();
        let mut same = histograms.filter(|histogram| measured(&histogram.of, true) == name);
        if let Some(histogram) = same.next() {
            out.tag("<h3>Distribution</h3>\n");
            histogram::put(histogram, "Events", out);
        }
        out.tag("</section>\n");
    }
    let left_out = maps().count().saturating_sub(MAX_MAPS);
    if left_out > 0 {
        let words =
            format!("distributions of {left_out} more arguments of these names left out here");
        put_notes("note", [words], out);
    }
}

fn put_map(map: &HeatMap, timeline: Timeline, out: &mut Markup) {
    let form = form(&map.of, true);
    let rows = map.buckets.iter().rev().map(|bucket| ShadeRow {
        label: scalar::shown(bucket.from, &form),
        until: bucket.to.map(|to| scalar::shown(to, &form)),
        counts: &bucket.counts,
    });
    let shades = ShadeMap {
        rows: rows.collect(),
        timeline,
        unit: "events",
        of_rows: "values",
    };
    shades.put(out);
}

/// Appends the busiest processes, if there is more than one.
pub(crate) fn put_processes(overview: &Overview, out: &mut Markup) {
    let facts = &overview.summary;
    if facts.busiest.all < 2 {
        return;
    }
    let names = ["Process", "PID", "Events", "/s", "Share", "Probes"];
    let mut table = HtmlTable::new(
        "data processes",
        HtmlColumn::all(&names, 1),
        ROOM_OF_PROCESSES,
    );
    let shown = facts.busiest.first.len().min(MAX_PROCESSES);
    for process in facts.busiest.first.iter().take(shown) {
        let mut row = vec![
            HtmlCell::Code(process.comm.clone()),
            HtmlCell::number(process.pid.to_string(), process.pid),
            HtmlCell::count(process.count),
        ];
        row.extend(rates_cells(process.count, facts));
        row.push(HtmlCell::number(process.probes.to_string(), process.probes));
        table.row(&row);
    }
    table.leave_out(facts.busiest.all.saturating_sub(shown));
    out.tag("<section id=\"processes\"><h2>Processes</h2>\n");
    table.put(out);
    out.tag("</section>\n");
}

//! The summary: probes, what is unusual, arguments and processes.

use usdtrec_analysis::overview::Overview;
use usdtrec_analysis::overview::numbers::NumberOverview;
use usdtrec_analysis::rate::Rates;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, Spread};
use usdtrec_format::escape::quote;
use usdtrec_view::columns::shortened;
use usdtrec_view::hints::HintWords;
use usdtrec_view::numbers::percent;
use usdtrec_view::report::heatmap::{ShadeRow, rows};
use usdtrec_view::report::probes::{self, silent};
use usdtrec_view::report::short_names::ShortNames;
use usdtrec_view::report::{arguments, busiest};
use usdtrec_view::sentences::Sentences;
use usdtrec_view::subject_names::measured;
use usdtrec_view::table::TableCell;
use usdtrec_view::text::scalar;

use crate::html::heat::ShadeMap;
use crate::html::histogram;
use crate::html::markup::Markup;
use crate::html::notes::put_notes;
use crate::html::table::HtmlTable;

/// Maximum size of the rows of tables, bytes.
const MAX_TABLE_BYTES: usize = 64 << 10;
const MAX_PROCESSES_BYTES: usize = 24 << 10;
const MAX_VALUES_BYTES: usize = 8 << 10;
const MAX_ALL_VALUES_BYTES: usize = 100 << 10;
/// Maximum length of each of the most frequent strings of an argument, characters.
const MAX_STRING_CHARACTERS: usize = 60;
/// Values of an argument that are listed.
const MAX_VALUES: usize = 40;
/// Heat maps of arguments.
const MAX_MAPS: usize = 4;
/// Processes that are listed.
const MAX_PROCESSES: usize = 50;

/// Appends the table of probes.
pub(crate) fn put_probes(facts: &SummaryFacts, out: &mut Markup) {
    let table = HtmlTable::from_table("data probes", &probes::table(facts), MAX_TABLE_BYTES);
    if !table.is_empty() {
        table.put(out);
    }
    put_notes("note", silent(facts), out);
    let reasons = facts.reasons.sentences(HintWords::default());
    put_notes("note", reasons, out);
}

/// Appends events over time.
pub(crate) fn put_rates(facts: &SummaryFacts, rates: &Rates, out: &mut Markup) {
    let names = ShortNames::new(facts);
    let series = rates.series.iter();
    let series = series.filter(|series| series.counts.iter().any(|&count| count > 0));
    let rows = series.map(|series| ShadeRow {
        label: names
            .name(series.event.as_deref().unwrap_or_default())
            .to_owned(),
        until: None,
        counts: &series.counts,
    });
    let map = ShadeMap {
        rows: rows.collect(),
        timeline: rates.timeline,
        times_of_day: facts.origin.times_of_day.as_ref(),
        unit: "events",
        of_rows: "probes",
    };
    map.put(out);
}

/// Appends what arguments hold.
pub(crate) fn put_arguments(facts: &SummaryFacts, out: &mut Markup) {
    let table = HtmlTable::from_table(
        "data arguments",
        &arguments::table(facts, MAX_STRING_CHARACTERS),
        MAX_TABLE_BYTES,
    );
    if table.is_empty() {
        return;
    }
    let mut values = Markup::default();
    let mut left_out = 0;
    for (name, argument) in arguments::arguments(facts) {
        let next = values_of(&name, argument);
        match values.len() + next.len() > MAX_ALL_VALUES_BYTES {
            true => left_out += 1,
            false => drop(values.append(&next)),
        }
    }
    out.tag("<section id=\"arguments\"><h2>Arguments</h2>\n");
    table.put(out);
    put_notes("note", arguments::remark(facts).map(str::to_owned), out);
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
    let mut table = HtmlTable::new("data values", names, MAX_VALUES_BYTES);
    let spreads = [&argument.integers, &argument.floats];
    for spread in spreads.into_iter().flatten() {
        put_numbers(spread, argument, &mut table);
    }
    if let Some(strings) = &argument.strings {
        for string in strings.values.iter().take(MAX_VALUES) {
            let mut shown = String::new();
            match argument.form.readable_string(&string.value) {
                Some(name) => quote(&mut shown, name.as_bytes()),
                None => quote(&mut shown, &string.value),
            }
            table.row(&value_row(shown, string.count, strings.count), None);
        }
        table.leave_out(strings.different.saturating_sub(MAX_VALUES));
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

fn value_row(shown: String, count: u64, of: u64) -> [TableCell; 3] {
    [
        TableCell::Value(shown),
        TableCell::count(count),
        TableCell::number(percent(count, of), count),
    ]
}

fn put_numbers(spread: &Spread, argument: &ArgumentFacts, table: &mut HtmlTable) {
    let values = spread.values.as_deref().unwrap_or_default();
    let form = argument.form.clone();
    for number in values.iter().take(MAX_VALUES) {
        let shown = scalar::shown(number.value, &form);
        table.row(&value_row(shown, number.count, spread.count), None);
    }
    table.leave_out(values.len().saturating_sub(MAX_VALUES));
}

/// Appends the distributions of arguments.
pub(crate) fn put_numbers_over_time(overview: &Overview, out: &mut Markup) {
    let all: &[NumberOverview] = &overview.numbers;
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
        let shades = ShadeMap {
            rows: rows(map),
            timeline: numbers.heat.timeline,
            times_of_day: overview.summary.origin.times_of_day.as_ref(),
            unit: "events",
            of_rows: "values",
        };
        shades.put(out);
        let histograms = numbers.histograms.all.iter();
        let mut same = histograms.filter(|histogram| measured(&histogram.of, true) == name);
        // Integers and floats of one argument have a map and a histogram each.
        let before = numbers.heat.all.iter();
        let before = before.take_while(|other| !std::ptr::eq(*other, map));
        let nth = before.filter(|other| measured(&other.of, true) == name);
        if let Some(histogram) = same.nth(nth.count()) {
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

/// Appends the busiest processes, if there is more than one.
pub(crate) fn put_processes(overview: &Overview, out: &mut Markup) {
    let facts = &overview.summary;
    if facts.busiest.all < 2 {
        return;
    }
    let shown = busiest::table(facts, MAX_PROCESSES);
    let mut table = HtmlTable::from_table("data processes", &shown, MAX_PROCESSES_BYTES);
    table.leave_out(facts.busiest.all.saturating_sub(shown.rows.len()));
    out.tag("<section id=\"processes\"><h2>Processes</h2>\n");
    table.put(out);
    out.tag("</section>\n");
}

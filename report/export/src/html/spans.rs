//! Spans: the table of all, and each kind in detail.

use usdtrec_analysis::overview::Overview;
use usdtrec_analysis::overview::spans::{SpanOverview, SpanShape};
use usdtrec_analysis::span_report::facts::{DurationFacts, SpanFacts, SpanReport};
use usdtrec_format::counted;
use usdtrec_trace::form::Form;
use usdtrec_view::cells::{cells, group_name};
use usdtrec_view::hints::{HintWords, more_groups};
use usdtrec_view::measured::ambiguities;
use usdtrec_view::numbers::duration;
use usdtrec_view::report::spans::{figures, name, remarks, warnings};
use usdtrec_view::text::scalar;

use crate::html::heat::{ShadeMap, ShadeRow};
use crate::html::markup::{Markup, shortened};
use crate::html::notes::put_notes;
use crate::html::table::{HtmlCell, HtmlColumn, HtmlTable};
use crate::html::{histogram, slowest};

/// Room for the rows of the table of all, and of groups, bytes.
const ROOM: usize = 48 << 10;
const ROOM_OF_GROUPS: usize = 24 << 10;
/// Kinds of spans in detail.
pub(crate) const MAX_DETAILS: usize = 6;
/// Maximum length of the name of a group, characters.
const MAX_NAME_CHARACTERS: usize = 200;

/// The figures of spans in tables.
const FIGURES: [&str; 9] = [
    "Count", "p50", "p90", "p99", "p99.9", "max", "Sum", "Self", "Total",
];

/// The spans of a page: those that are named, or all of the summary.
pub(crate) fn facts(overview: &Overview, are_named: bool) -> Vec<&SpanFacts> {
    let all: Vec<&SpanFacts> = match are_named {
        true => {
            let reports = overview.spans.iter();
            reports.flat_map(|found| &found.report.spans).collect()
        }
        false => overview.summary.spans.iter().collect(),
    };
    let (mut shown, unmatched): (Vec<&SpanFacts>, Vec<&SpanFacts>) = all
        .into_iter()
        .filter(|span| span.counts.is_seen())
        .partition(|span| span.durations.count > 0);
    shown.sort_by_key(|span| std::cmp::Reverse(span.durations.total()));
    shown.extend(unmatched);
    shown
}

/// Appends the table of spans, with warnings and remarks.
pub(crate) fn put_table(shown: &[&SpanFacts], hints: HintWords, out: &mut Markup) {
    let all: Vec<SpanFacts> = shown.iter().map(|span| (*span).clone()).collect();
    let mut names = vec!["Span"];
    names.extend(FIGURES);
    names.push("Open");
    let mut table = HtmlTable::new("data spans", HtmlColumn::all(&names, 1), ROOM);
    for span in shown {
        let mut row = row(&name(span, &all), &span.durations);
        row.push(HtmlCell::count(span.counts.going_on()));
        table.row(&row);
    }
    table.put(out);
    let warnings = shown
        .iter()
        .flat_map(|span| warnings(span, &name(span, &all), hints));
    put_notes("warn", warnings, out);
    put_notes("note", remarks(shown, &all), out);
    if shown.iter().any(|span| !span.durations.exact) {
        put_notes("note", ["percentiles are within 0.4 %".to_owned()], out);
    }
}

fn row(name: &str, durations: &DurationFacts) -> Vec<HtmlCell> {
    let values = [
        durations.count,
        durations.p50,
        durations.p90,
        durations.p99,
        durations.p999,
        durations.max,
        durations.sum(),
        durations.own(),
        durations.total(),
    ];
    let mut shown = figures(name, durations).into_iter();
    let first = shown.next().unwrap_or_default();
    let mut row = vec![HtmlCell::Code(first)];
    row.extend(shown.zip(values).map(|(shown, value)| match &*shown {
        "-" => HtmlCell::NoNumber("-"),
        _ => HtmlCell::number(shown, value),
    }));
    row
}

/// A kind of span in detail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanDetail<'o> {
    found: &'o SpanOverview,
    /// Its place in the report.
    at: usize,
    pub(crate) span: &'o SpanFacts,
    shape: &'o SpanShape,
}

/// The spans in detail. A name may be that of several kinds.
pub(crate) fn details(overview: &Overview) -> Vec<SpanDetail<'_>> {
    let details = overview.spans.iter().flat_map(|found| {
        let both = found.report.spans.iter().zip(&found.shapes).enumerate();
        both.map(move |(at, (span, shape))| SpanDetail {
            found,
            at,
            span,
            shape,
        })
    });
    details
        .filter(|detail| detail.span.durations.count > 0)
        .collect()
}

/// Appends the sections of the spans in detail.
pub(crate) fn put_details(overview: &Overview, out: &mut Markup) {
    let details = details(overview);
    for (at, detail) in details.iter().take(MAX_DETAILS).enumerate() {
        out.tag("<section class=\"span\"")
            .attribute("id", &format!("span-{}", at + 1))
            .tag("><h2>Span <code>")
            .text(&shortened(&detail.span.name, MAX_NAME_CHARACTERS))
            .tag("</code></h2>\n");
        let ambiguities = ambiguities(&detail.found.report.ambiguities, HintWords::default());
        put_notes("note", ambiguities, out);
        put_detail(detail, out);
        out.tag("</section>\n");
    }
    let left_out = details.len().saturating_sub(MAX_DETAILS);
    let more = overview.more_spans + left_out;
    if more > 0 {
        let words = format!(
            "{} of spans without details here",
            counted(more, "more kind")
        );
        put_notes("note", [words], out);
    }
    if overview.unfiltered_spans > 0 {
        let words = format!(
            "{} of spans without details here: the filter has names that they do not have",
            counted(overview.unfiltered_spans, "kind")
        );
        put_notes("note", [words], out);
    }
}

fn put_detail(detail: &SpanDetail<'_>, out: &mut Markup) {
    let SpanDetail {
        found, at, shape, ..
    } = *detail;
    let report = &found.report;
    out.tag("<h3>Duration over time</h3>\n");
    put_heat(shape, found, out);
    put_groups(report, at, out);
    let slow = report.slowest.get(at).map_or(&[][..], Vec::as_slice);
    out.tag("<h3>Slowest</h3>\n");
    slowest::put(slow, found.timeline, out);
    out.tag("<h3>Distribution</h3>\n");
    histogram::put(&shape.histogram, "Spans", out);
}

fn put_heat(shape: &SpanShape, found: &SpanOverview, out: &mut Markup) {
    let buckets = shape.heat.buckets.iter().rev();
    let rows = buckets.map(|bucket| ShadeRow {
        label: scalar::shown(bucket.from, &Form::Time(1)),
        until: bucket.to.map(|to| scalar::shown(to, &Form::Time(1))),
        counts: &bucket.counts,
    });
    let map = ShadeMap {
        rows: rows.collect(),
        timeline: found.timeline,
        unit: "spans",
        of_rows: "durations",
    };
    map.put(out);
}

fn put_groups(report: &SpanReport, at: usize, out: &mut Markup) {
    let groups = report.groups.get(at).map_or(&[][..], Vec::as_slice);
    if groups.is_empty() {
        return;
    }
    let by: Vec<&str> = report.by.iter().map(|by| &*by.name).collect();
    let by = by.join(", ");
    out.tag("<h3>By <code>").text(&by).tag("</code></h3>\n");
    let mut names = vec![&*by];
    names.extend(FIGURES);
    let mut table = HtmlTable::new("data groups", HtmlColumn::all(&names, 1), ROOM_OF_GROUPS);
    for group in groups {
        let keys = report.by.iter().map(|by| &by.key);
        let name = group_name(&cells(keys, &group.values, true));
        table.row(&row(
            &shortened(&name, MAX_NAME_CHARACTERS),
            &group.durations,
        ));
    }
    let others = report.others.get(at).and_then(Option::as_ref);
    table.put(out);
    let Some(others) = others else {
        return;
    };
    let durations = &others.durations;
    let words = format!(
        "{}: {} spans, together {}",
        more_groups(others.groups, HintWords::default()),
        durations.count,
        duration(durations.sum() as f64)
    );
    put_notes("note", [words], out);
    if let Some(bound) = others.doubtful {
        let words = format!(
            "there were too many groups to keep all: one that is not shown may have up to {} in total",
            duration(bound as f64)
        );
        put_notes("warn", [words], out);
    }
}

//! Spans: the table of all, and each kind in detail.

use usdtrec_analysis::overview::Overview;
use usdtrec_analysis::overview::spans::{SpanOverview, SpanShape};
use usdtrec_analysis::span_report::facts::{SpanFacts, SpanReport};
use usdtrec_format::counted;
use usdtrec_trace::wall_times::WallTimes;
use usdtrec_view::columns::shortened;
use usdtrec_view::hints::{HintWords, more_groups};
use usdtrec_view::numbers::duration;
use usdtrec_view::report::heatmap::rows;
use usdtrec_view::report::shown_times::ShownTimes;
use usdtrec_view::report::spans::{doubt, group_keys, group_table, remarks, seen, table, warnings};
use usdtrec_view::subject_names::ambiguities;

use crate::html::heat::ShadeMap;
use crate::html::markup::Markup;
use crate::html::notes::put_notes;
use crate::html::table::HtmlTable;
use crate::html::{histogram, slowest};

/// Maximum size of the rows of the table of all, and of groups, bytes.
const MAX_TABLE_BYTES: usize = 48 << 10;
const MAX_GROUPS_BYTES: usize = 24 << 10;
/// Kinds of spans in detail.
pub(crate) const MAX_DETAILS: usize = 6;
/// Maximum length of the name of a span, characters.
const MAX_NAME_CHARACTERS: usize = 200;

/// The spans of a page: those in detail, which are named or have a least duration, or all of the summary.
pub(crate) fn facts(overview: &Overview, are_chosen: bool) -> Vec<&SpanFacts> {
    let reports = overview.spans.iter();
    match are_chosen {
        true => seen(reports.flat_map(|found| &found.report.spans)),
        false => seen(overview.summary.spans.iter()),
    }
}

/// Appends the table of spans, with warnings and remarks.
pub(crate) fn put_table(shown: &[&SpanFacts], hints: HintWords, out: &mut Markup) {
    HtmlTable::from_table("data spans", &table(shown, shown), MAX_TABLE_BYTES).put(out);
    put_notes("warn", warnings(shown, shown, hints), out);
    put_notes("note", remarks(shown, shown), out);
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
    let times_of_day = overview.summary.origin.times_of_day.as_ref();
    for (at, detail) in details.iter().take(MAX_DETAILS).enumerate() {
        out.tag("<section class=\"span\"")
            .attribute("id", &format!("span-{}", at + 1))
            .tag("><h2>Span <code>")
            .text(&shortened(&detail.span.name, MAX_NAME_CHARACTERS))
            .tag("</code></h2>\n");
        let ambiguities = ambiguities(&detail.found.report.ambiguities, HintWords::default());
        put_notes("note", ambiguities, out);
        put_detail(detail, times_of_day, out);
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

fn put_detail(detail: &SpanDetail<'_>, times_of_day: Option<&WallTimes>, out: &mut Markup) {
    let SpanDetail {
        found, at, shape, ..
    } = *detail;
    let report = &found.report;
    out.tag("<h3>Duration over time</h3>\n");
    let map = ShadeMap {
        rows: rows(&shape.heat),
        timeline: found.timeline,
        times_of_day,
        unit: "spans",
        of_rows: "durations",
    };
    map.put(out);
    put_groups(report, at, out);
    let slow = report.slowest.get(at).map_or(&[][..], Vec::as_slice);
    out.tag("<h3>Slowest</h3>\n");
    slowest::put(slow, found.timeline, &ShownTimes::utc(times_of_day), out);
    out.tag("<h3>Distribution</h3>\n");
    histogram::put(&shape.histogram, "Spans", out);
}

fn put_groups(report: &SpanReport, at: usize, out: &mut Markup) {
    let by = group_keys(report);
    let table = group_table(report, at, &by);
    if table.rows.is_empty() {
        return;
    }
    out.tag("<h3>By <code>").text(&by).tag("</code></h3>\n");
    HtmlTable::from_table("data groups", &table, MAX_GROUPS_BYTES).put(out);
    let Some(others) = report.others.get(at).and_then(Option::as_ref) else {
        return;
    };
    let words = format!(
        "{}: {} spans, together {}",
        more_groups(others.groups, HintWords::default()),
        others.durations.count,
        duration(others.durations.sum() as f64)
    );
    put_notes("note", [words], out);
    put_notes("warn", doubt(others, report.order), out);
}

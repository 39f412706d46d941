//! Spans for people.

use std::fmt::Write as _;

use usdtrec_format::escape::escape;

use super::SpanQuestion;
use super::facts::{DurationFacts, Group, SlowFacts, SpanFacts, SpanReport};
use crate::report::columns::{Side, folded_from, put_columns};
use crate::report::look::Look;
use crate::span::MOST_SPAN_GROUPS;
use crate::text::time;

/// Longest cell of a group's name.
const LONGEST: usize = 60;

/// The report.
pub(super) fn render(report: &SpanReport, question: &SpanQuestion, look: Look) -> String {
    let mut out = String::new();
    report.head.put(look, &mut out);
    if question.min > 0 {
        let _ = writeln!(out, "# only spans of {} or more", time(question.min as f64));
    }
    out.push('\n');
    let with_events = |span: &SpanFacts| span.durations.count + span.open + span.unmatched > 0;
    if !report.spans.iter().any(with_events) {
        out.push_str("No spans.\n");
        return out;
    }
    span_table(&report.spans, look, &mut out);
    for (at, span) in report.spans.iter().enumerate() {
        let groups = report.groups.get(at).map_or(&[][..], Vec::as_slice);
        if !groups.is_empty() {
            put_groups(report, span, groups, (question.top, look), &mut out);
            let others = report.others.get(at).copied().unwrap_or(0);
            if others > 0 {
                let _ = writeln!(
                    out,
                    "other groups than the {MOST_SPAN_GROUPS} that were met first: {others} spans"
                );
            }
        }
        let slowest = report.slowest.get(at).map_or(&[][..], Vec::as_slice);
        put_slowest(span, slowest, look, &mut out);
    }
    out
}

/// Appends the table of spans, those that took the most time first.
pub(crate) fn span_table(spans: &[SpanFacts], look: Look, out: &mut String) {
    let mut rows = vec![heading("Span")];
    if let Some(row) = rows.first_mut() {
        row.push("Open".to_owned());
    }
    let mut sorted: Vec<&SpanFacts> = spans
        .iter()
        .filter(|span| span.durations.count + span.open + span.unmatched > 0)
        .collect();
    sorted.sort_by_key(|span| std::cmp::Reverse(span.durations.total));
    for span in &sorted {
        let mut row = figures(&escape(&span.name), &span.durations);
        row.push(span.open.to_string());
        rows.push(row);
    }
    let mut sides = vec![Side::Right; 9];
    sides[0] = Side::Left;
    put_columns(&rows, &sides, look, out);
    for span in sorted.iter().filter(|span| span.unmatched > 0) {
        let _ = writeln!(
            out,
            "{}: {} end{} without a beginning",
            escape(&span.name),
            span.unmatched,
            if span.unmatched == 1 { "" } else { "s" }
        );
    }
    if sorted.iter().any(|span| !span.durations.exact) {
        out.push_str("percentiles are within 0.4 %\n");
    }
}

fn heading(first: &str) -> Vec<String> {
    [first, "Count", "p50", "p90", "p99", "p99.9", "max", "Total"]
        .map(str::to_owned)
        .to_vec()
}

fn figures(name: &str, durations: &DurationFacts) -> Vec<String> {
    let of = |ns: u64| {
        if durations.count == 0 {
            "-".to_owned()
        } else {
            time(ns as f64)
        }
    };
    vec![
        name.to_owned(),
        durations.count.to_string(),
        of(durations.p50),
        of(durations.p90),
        of(durations.p99),
        of(durations.p999),
        of(durations.max),
        time(durations.total as f64),
    ]
}

fn put_groups(
    report: &SpanReport,
    span: &SpanFacts,
    groups: &[Group],
    (top, look): (usize, Look),
    out: &mut String,
) {
    let by = report.by.join(", ");
    let mut rows = vec![heading(&format!(
        "{} by {}",
        escape(&span.name),
        escape(&by)
    ))];
    for group in groups.iter().take(top) {
        let name = group.name();
        let name = match name.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name,
        };
        rows.push(figures(&name, &group.durations));
    }
    let mut sides = vec![Side::Right; 8];
    sides[0] = Side::Left;
    out.push('\n');
    put_columns(&rows, &sides, look, out);
    if groups.len() > top {
        let _ = writeln!(out, "and {} more groups (--top)", groups.len() - top);
    }
}

fn put_slowest(span: &SpanFacts, slowest: &[SlowFacts], look: Look, out: &mut String) {
    if slowest.is_empty() {
        return;
    }
    out.push('\n');
    look.put_heading(&format!("Slowest {}", escape(&span.name)), out);
    for SlowFacts { slow, .. } in slowest {
        let seconds = slow.time.0 / 1_000_000_000;
        let arguments = slow
            .arguments
            .iter()
            .map(|(name, value)| format!("{}={value}", escape(name)));
        let arguments: Vec<String> = arguments.collect();
        let start = format!(
            "{:>8}  {seconds}.{:06}  {} {}  ",
            time(slow.duration as f64),
            slow.time.0 % 1_000_000_000 / 1000,
            slow.comm,
            slow.tid,
        );
        folded_from(&start, &arguments.join(" "), &" ".repeat(10), out);
    }
}

//! Spans as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use usdtrec_analysis::question::GroupOrder;
use usdtrec_analysis::span_report::facts::{DurationFacts, SlowFacts, SpanFacts, SpanReport};
use usdtrec_analysis::spans::covers::CoveredTime;
use usdtrec_format::escape::escape;

use crate::answer_style::AnswerStyle;
use crate::cells::{cells, group_name};
use crate::columns::{ColumnSide, folded, folded_from, put_columns};
use crate::head;
use crate::hints::{Hint, HintWords, more_groups};
use crate::measured::ambiguities;
use crate::numbers::duration;
use crate::numbers::percent;
use crate::text::buffer::Text;
use crate::theme::Theme;

/// Maximum length of the name of a group, characters.
const MAX_NAME_CHARACTERS: usize = 60;

/// The report.
pub(crate) fn render(report: &SpanReport, style: AnswerStyle) -> String {
    let AnswerStyle { theme, hints, .. } = style;
    let mut out = String::new();
    let remarks = ambiguities(&report.ambiguities, hints);
    head::put(&report.origin, &remarks, theme, &mut out);
    if report.min > 0 {
        let _ = writeln!(
            out,
            "# only spans of {} or more",
            duration(report.min as f64)
        );
    }
    out.push('\n');
    if !report.spans.iter().any(|span| span.counts.is_seen()) {
        out.push_str("No spans.\n");
        return out;
    }
    span_table(&report.spans, style, &mut out);
    let mut spans: Vec<(usize, &SpanFacts)> = report.spans.iter().enumerate().collect();
    spans.sort_by_key(|(_, span)| std::cmp::Reverse(span.durations.total()));
    for (at, span) in spans {
        let groups = report.groups.get(at).map_or(&[][..], Vec::as_slice);
        if !groups.is_empty() {
            put_groups(report, at, span, style, &mut out);
        }
        let slowest = report.slowest.get(at).map_or(&[][..], Vec::as_slice);
        put_slowest(&name(span, &report.spans), slowest, theme, &mut out);
    }
    out
}

/// Appends the table of spans, the longest total time first, with warnings and remarks.
pub(crate) fn span_table(spans: &[SpanFacts], style: AnswerStyle, out: &mut String) {
    let AnswerStyle { theme, hints, .. } = style;
    let mut rows = vec![heading("Span")];
    if let Some(row) = rows.first_mut() {
        row.push("Open".to_owned());
    }
    let (mut sorted, unmatched): (Vec<&SpanFacts>, Vec<&SpanFacts>) = spans
        .iter()
        .filter(|span| span.counts.is_seen())
        .partition(|span| span.durations.count > 0);
    sorted.sort_by_key(|span| std::cmp::Reverse(span.durations.total()));
    sorted.extend(unmatched);
    for span in &sorted {
        let mut row = figures(&name(span, spans), &span.durations);
        row.push(span.counts.going_on().to_string());
        rows.push(row);
    }
    let mut sides = vec![ColumnSide::Right; 11];
    sides[0] = ColumnSide::Left;
    put_columns(&rows, &sides, theme, out);
    for warning in sorted
        .iter()
        .flat_map(|span| warnings(span, &name(span, spans), hints))
    {
        folded_from("WARNING: ", &warning, "  ", out);
    }
    for remark in remarks(&sorted, spans) {
        folded(&remark, "  ", out);
    }
    if sorted.iter().any(|span| !span.durations.exact) {
        out.push_str("  percentiles are within 0.4 %\n");
    }
}

/// The name of a span, without its provider unless another span has the same name.
pub fn name(span: &SpanFacts, all: &[SpanFacts]) -> String {
    let bare = |name| match str::split_once(name, ':') {
        Some((_, bare)) if !name.contains("..") => bare,
        _ => name,
    };
    let same = all.iter();
    let same = same.filter(|other| bare(&other.name) == bare(&span.name));
    let name = if same.count() > 1 {
        &span.name
    } else {
        bare(&span.name)
    };
    escape(name).into_owned()
}

/// Warnings: more than one in a hundred begins has no end, or ends no begin.
pub fn warnings(span: &SpanFacts, name: &str, hints: HintWords) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(key) = &span.better_key {
        let how = hints.between(": ", &Hint::SpanKey { name: key }, "");
        warnings.push(format!(
            "begins and ends of {name} are on different threads and have the same {}{how}",
            escape(key)
        ));
        return warnings;
    }
    let mut warn = |missing: u64, what: &str, lack: &str, reasons: &[&str]| {
        let all = span.counts.ended.saturating_add(missing);
        if missing.saturating_mul(100) > all {
            let share = percent(missing, all);
            let reasons = reasons.join("; ");
            warnings.push(format!(
                "{missing} of {all} {what} of {name} ({share}) have no {lack}: {reasons}"
            ));
        }
    };
    let lost = span
        .lost
        .is_some_and(|lost| lost > 0)
        .then_some("hits were lost");
    let counts = &span.counts;
    let left = (counts.unfinished > counts.followed).then_some(
        "calls were left by an exception or longjmp, or the program does not report every return",
    );
    let followed = (counts.followed > 0).then_some(match lost {
        Some(_) => "the next one began, so they had ended",
        None => {
            "the next one began, so they had ended: the program does not report every end, as of what fails"
        }
    });
    let going_on = (counts.going_on() > 0).then_some("they were open when the recording ended");
    let reasons = [lost, left, followed, going_on].into_iter();
    let reasons: Vec<&str> = reasons.flatten().collect();
    warn(span.counts.open, "begins", "end", &reasons);
    let agreed = span.agreed.join(", ");
    let differ = format!(
        "the recording began in the middle of them, or their begins have another {}",
        escape(&agreed)
    );
    let differ = match agreed.is_empty() {
        true => "the recording began in the middle of them, or not every begin is reported",
        false => &differ,
    };
    let reasons: Vec<&str> = lost.into_iter().chain([differ]).collect();
    warn(span.counts.unmatched, "ends", "begin", &reasons);
    warnings
}

/// Remarks: keys other than the thread, nesting, and hits that belong to no span.
pub fn remarks(shown: &[&SpanFacts], all: &[SpanFacts]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut keys: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for span in shown.iter().filter(|span| span.key != "tid") {
        keys.entry(&span.key).or_default().push(name(span, all));
    }
    for (key, names) in keys {
        let names = names.join(", ");
        remarks.push(format!(
            "begin and end have the same {}: {names}",
            escape(key)
        ));
    }
    let mut agreed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for span in shown.iter().filter(|span| !span.agreed.is_empty()) {
        let names = agreed.entry(span.agreed.join(", ")).or_default();
        names.push(name(span, all));
    }
    for (arguments, names) in agreed {
        let names = names.join(", ");
        remarks.push(format!(
            "begin and end agree in {}: {names}",
            escape(&arguments)
        ));
    }
    let mut each = |what: &str, of: &dyn Fn(&SpanFacts) -> Option<String>| {
        let listed = shown
            .iter()
            .filter_map(|span| Some(format!("{} {}", name(span, all), of(span)?)));
        let listed: Vec<String> = listed.collect();
        if !listed.is_empty() {
            remarks.push(format!("{what}: {}", listed.join(", ")));
        }
    };
    let more = |number: u64| (number > 0).then(|| number.to_string());
    each("nested (Total counts each moment once)", &|span| {
        // What never ends is in no total.
        (span.counts.depth > span.counts.open + 1).then(|| format!("{} deep", span.counts.depth))
    });
    each("hits without a key, which are left out", &|span| {
        more(span.counts.unkeyed)
    });
    each("begins without an end", &|span| {
        more(span.counts.unfinished)
    });
    each("ends without a beginning", &|span| {
        more(span.counts.unmatched)
    });
    remarks.extend(losses(shown, all));
    remarks
}

/// What losses mean for spans.
fn losses(shown: &[&SpanFacts], all: &[SpanFacts]) -> Option<String> {
    let lossy = shown
        .iter()
        .filter(|span| span.lost.is_some_and(|lost| lost > 0));
    let lossy: Vec<String> = lossy.map(|span| name(span, all)).collect();
    let of = match lossy.len() {
        0 => return None,
        many if many == shown.len() => "these probes".to_owned(),
        _ => lossy.join(", "),
    };
    Some(format!(
        "hits were lost of {of}: some spans, the longest above all, may have another one's end"
    ))
}

fn heading(first: &str) -> Vec<String> {
    [
        first, "Count", "p50", "p90", "p99", "p99.9", "max", "Sum", "Self", "Total",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The cells of a row of spans.
pub fn figures(name: &str, durations: &DurationFacts) -> Vec<String> {
    let of = |ns: u64| {
        if durations.count == 0 {
            "-".to_owned()
        } else {
            duration(ns as f64)
        }
    };
    let covered = |of: fn(CoveredTime) -> u64| match durations.covered {
        Some(covered) => duration(of(covered) as f64),
        None => "-".to_owned(),
    };
    vec![
        name.to_owned(),
        durations.count.to_string(),
        of(durations.p50),
        of(durations.p90),
        of(durations.p99),
        of(durations.p999),
        of(durations.max),
        duration(durations.sum() as f64),
        covered(|covered| covered.own),
        covered(|covered| covered.total),
    ]
}

fn put_groups(
    report: &SpanReport,
    at: usize,
    span: &SpanFacts,
    style: AnswerStyle,
    out: &mut String,
) {
    let AnswerStyle {
        human,
        theme,
        hints,
    } = style;
    let groups = report.groups.get(at).into_iter().flatten();
    let by: Vec<&str> = report.by.iter().map(|by| &*by.name).collect();
    let by = by.join(", ");
    let span = name(span, &report.spans);
    let mut rows = vec![heading(&format!("{span} by {}", escape(&by)))];
    for group in groups {
        let keys = report.by.iter().map(|by| &by.key);
        let name = group_name(&cells(keys, &group.values, human));
        let name = match name.char_indices().nth(MAX_NAME_CHARACTERS) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name,
        };
        rows.push(figures(&name, &group.durations));
    }
    let others = report.others.get(at).and_then(Option::as_ref);
    if let Some(others) = others {
        let name = more_groups(others.groups, hints);
        rows.push(figures(&name, &others.durations));
    }
    let mut sides = vec![ColumnSide::Right; 10];
    sides[0] = ColumnSide::Left;
    out.push('\n');
    put_columns(&rows, &sides, theme, out);
    if let Some(bound) = others.and_then(|others| others.doubtful) {
        let bound = match report.order {
            GroupOrder::Count => bound.to_string(),
            _ => duration(bound as f64),
        };
        let warning = format!(
            "there were too many groups to keep all: one that is not shown may have up to {bound} of what they are sorted by"
        );
        folded_from("WARNING: ", &warning, "  ", out);
    }
}

fn put_slowest(span: &str, slowest: &[SlowFacts], theme: Theme, out: &mut String) {
    if slowest.is_empty() {
        return;
    }
    out.push('\n');
    theme.put_heading(&format!("Slowest {span}"), out);
    for SlowFacts { slow, begin } in slowest {
        let seconds = slow.time.0 / 1_000_000_000;
        let arguments = begin.arguments.iter().map(|argument| {
            let mut text = Text::default();
            text.formed(&argument.form.clone().human(false), &argument.value);
            format!("{}={}", escape(&argument.name), text.into_string())
        });
        let arguments: Vec<String> = arguments.collect();
        let start = format!(
            "{:>8}  {seconds}.{:06}  {} {}  ",
            duration(slow.duration as f64),
            slow.time.0 % 1_000_000_000 / 1000,
            begin.comm,
            begin.tid,
        );
        folded_from(&start, &arguments.join(" "), &" ".repeat(10), out);
    }
}

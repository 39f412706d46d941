//! Spans as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use usdtrec_analysis::question::GroupOrder;
use usdtrec_analysis::span_report::facts::{
    BeginNeed, DurationFacts, OtherSpans, SlowFacts, SpanFacts, SpanReport,
};
use usdtrec_analysis::spans::slowest::SlowBegin;
use usdtrec_analysis::spans::waits::WaitFacts;
use usdtrec_analysis::stats::ratio::share;
use usdtrec_format::escape::escape;
use usdtrec_format::{Missing, TimePart, Value};
use usdtrec_trace::session::event_name::bare_name;

use crate::answer_style::AnswerStyle;
use crate::cells::{cells, group_name};
use crate::columns::{folded, folded_from, put_table, shortened};
use crate::head;
use crate::hints::{Hint, HintWords, more_groups};
use crate::numbers::{about, duration, parts_or_reason, percent};
use crate::report::losses::recorded;
use crate::report::shown_times::ShownTimes;
use crate::subject_names::ambiguities;
use crate::table::{Table, TableCell};
use crate::text::buffer::Text;
use crate::theme::Theme;

/// Maximum number of words for what the threads of spans waited for, their length in characters, and the least share of the time that each has.
const MAX_WAITS: usize = 6;
const MAX_WAIT_CHARACTERS: usize = 40;
const LEAST_WAIT: f64 = 0.01;

/// The report.
pub(crate) fn render(report: &SpanReport, style: AnswerStyle, times: &ShownTimes) -> String {
    let AnswerStyle { theme, hints, .. } = style;
    let mut out = String::new();
    let remarks = ambiguities(&report.ambiguities, hints);
    head::put(&report.origin, &remarks, theme, &mut out);
    let of_parts = report.least_parts.asked();
    let of_parts = of_parts.map(|(part, least)| {
        let least = duration(least as f64);
        format!("only spans of {least} {} or more", part.spec().words)
    });
    let remarks = only_long(report.min).into_iter().chain(of_parts);
    out.extend(remarks.map(|remark| format!("# {remark}\n")));
    out.push('\n');
    if !report.spans.iter().any(|span| span.counts.is_seen()) {
        out.push_str("No spans.\n");
        return out;
    }
    let all: Vec<&SpanFacts> = report.spans.iter().collect();
    put(&all, style, &mut out);
    if let Some(remark) = matched_by_thread(&seen(all.iter().copied()), &all) {
        folded(&remark, "  ", theme, &mut out);
    }
    let mut spans: Vec<(usize, &SpanFacts)> = report.spans.iter().enumerate().collect();
    spans.sort_by_key(|(_, span)| std::cmp::Reverse(span.durations.total()));
    let sections = spans.into_iter().map(|(at, span)| {
        let name = name(span, &all);
        let mut groups = String::new();
        if report
            .groups
            .get(at)
            .is_some_and(|groups| !groups.is_empty())
        {
            put_groups(report, at, &name, style, &mut groups);
        }
        let slowest = report.slowest.get(at).map_or(&[][..], Vec::as_slice);
        let slowest = slowest.iter().map(|one| slow_span(one, theme, times));
        Section {
            name,
            groups,
            slowest: slowest.collect(),
        }
    });
    put_sections(&sections.collect::<Vec<_>>(), style, &mut out);
    out
}

/// Says that spans are left out which are shorter than so many ns; `None` if none are.
pub fn only_long(min: u64) -> Option<String> {
    (min > 0).then(|| format!("only spans of {} or more", duration(min as f64)))
}

/// The section on a kind of spans, below the table of all.
struct Section {
    name: String,
    /// The table of its groups.
    groups: String,
    /// Its slowest spans, each as lines.
    slowest: Vec<String>,
}

/// Appends the sections. The slowest spans have the lines that the tables leave.
fn put_sections(sections: &[Section], style: AnswerStyle, out: &mut String) {
    let lines = |text: &str| text.lines().count();
    let tables: usize = sections.iter().map(|section| lines(&section.groups)).sum();
    let lists = sections
        .iter()
        .filter(|section| !section.slowest.is_empty());
    // A line remains for what is typed next.
    let rest = |all: usize| all.saturating_sub(lines(out) + tables + 1);
    let room = style.lines.map(|all| rest(all) / lists.count().max(1));
    for section in sections {
        out.push_str(&section.groups);
        put_slowest(section, room, style, out);
    }
}

/// Appends the table of spans, with warnings and remarks.
pub(crate) fn put(all: &[&SpanFacts], style: AnswerStyle, out: &mut String) {
    let shown = seen(all.iter().copied());
    put_table(&table(&shown, all), style.theme, out);
    for warning in warnings(&shown, all, style.hints) {
        folded_from("WARNING: ", &warning, "  ", style.theme, out);
    }
    for remark in remarks(&shown, all) {
        folded(&remark, "  ", style.theme, out);
    }
}

/// The spans that were seen: the longest total time first, and then those of which none ended.
pub fn seen<'s>(spans: impl Iterator<Item = &'s SpanFacts>) -> Vec<&'s SpanFacts> {
    let (mut seen, unmatched): (Vec<&SpanFacts>, Vec<&SpanFacts>) = spans
        .filter(|span| span.counts.is_seen())
        .partition(|span| span.durations.count > 0);
    seen.sort_by_key(|span| std::cmp::Reverse(span.durations.total()));
    seen.extend(unmatched);
    seen
}

/// The table of spans.
pub fn table(shown: &[&SpanFacts], all: &[&SpanFacts]) -> Table {
    let has_parts = shown.iter().any(|span| span.durations.spent.is_some());
    let mut table = Table::new(columns("Span", has_parts).into_iter().chain(["Open"]));
    for span in shown {
        let mut row = figures(TableCell::Code(name(span, all)), &span.durations, has_parts);
        row.push(TableCell::count(span.counts.going_on()));
        table.rows.push(row);
        table
            .rows
            .extend(own_figures(&span.durations).map(|mut row| {
                row.push(TableCell::unsorted(""));
                row
            }));
        put_waits(&span.durations, &mut table);
    }
    table
}

/// The name of a span, without its provider unless another span has the same name.
pub(crate) fn name(span: &SpanFacts, all: &[&SpanFacts]) -> String {
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

/// Warnings about spans.
pub fn warnings(shown: &[&SpanFacts], all: &[&SpanFacts], hints: HintWords) -> Vec<String> {
    let warnings = shown.iter();
    warnings
        .flat_map(|span| warnings_about(span, &name(span, all), hints))
        .collect()
}

/// Warnings: more than one in a hundred begins has no end, or ends no begin.
fn warnings_about(span: &SpanFacts, name: &str, hints: HintWords) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(key) = &span.better_key {
        let hint = Hint::SpanKey {
            span: &span.name,
            name: key,
        };
        let how = hints.between(": ", &hint, "");
        warnings.push(format!(
            "begins and ends of {name} are on different threads and have the same {}{how}",
            escape(key)
        ));
        return warnings;
    }
    let mut warn = |missing: u64, others: u64, what: &str, lack: &str, reasons: &[&str]| {
        let all = others.saturating_add(missing);
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
    warn(counts.open, counts.ended_begins, "begins", "end", &reasons);
    let of_ends = end_reasons(span);
    let reasons = lost.into_iter().chain(of_ends.iter().map(String::as_str));
    let reasons: Vec<&str> = reasons.collect();
    warn(
        counts.unmatched,
        counts.begun_ends,
        "ends",
        "begin",
        &reasons,
    );
    warnings
}

/// Whether begin and end have nothing but the thread in common.
fn is_by_thread(span: &SpanFacts) -> bool {
    span.key == "tid" && span.agreed.is_empty()
}

/// Which spans are matched by the thread alone, as those are of which nothing else is said.
fn matched_by_thread(shown: &[&SpanFacts], all: &[&SpanFacts]) -> Option<String> {
    let of_thread = shown.iter().filter(|span| is_by_thread(span));
    matched_by(of_thread.map(|span| named_rule(span, all))).pop()
}

fn named_rule(span: &SpanFacts, all: &[&SpanFacts]) -> NamedRule {
    NamedRule {
        name: name(span, all),
        rule: rule(&span.key, &span.agreed),
    }
}

/// Spans, and what their begins and ends have in common.
pub(crate) struct NamedRule {
    pub(crate) name: String,
    pub(crate) rule: String,
}

/// `matched by thread and arg1: request`: a line for each rule.
pub(crate) fn matched_by(spans: impl Iterator<Item = NamedRule>) -> Vec<String> {
    let mut rules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for NamedRule { name, rule } in spans {
        rules.entry(rule).or_default().push(name);
    }
    let rules = rules.into_iter();
    let line = |(rule, names): (String, Vec<String>)| {
        format!("matched by {}: {}", escape(&rule), names.join(", "))
    };
    rules.map(line).collect()
}

/// What begin and end have in common: `thread and arg1`.
pub(crate) fn rule(key: &str, agreed: &[String]) -> String {
    let word = |key| match key {
        "tid" => "thread",
        "pid" => "process",
        other => other,
    };
    let all = key.split(',').map(word);
    let mut all: Vec<&str> = all.chain(agreed.iter().map(String::as_str)).collect();
    match all.pop() {
        Some(last) if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        last => last.unwrap_or_default().to_owned(),
    }
}

/// Why ends have no begin, besides lost hits.
fn end_reasons(span: &SpanFacts) -> Vec<String> {
    let counts = &span.counts;
    let late = counts.unmatched.saturating_sub(counts.early);
    let mut reasons = Vec::new();
    if counts.has_no_begins() {
        reasons.push("no begin was hit".to_owned());
    } else if counts.early > 0 {
        let of = match late {
            0 => "them".to_owned(),
            _ => format!("at most {} of them", counts.early),
        };
        reasons.push(format!("the recording began in the middle of {of}"));
    }
    if late == 0 && !counts.has_no_begins() {
        return reasons;
    }
    for BeginNeed { event, needs } in &span.begin_needs {
        reasons.push(format!(
            "{} needs {}",
            escape(event.trim_start_matches("sdt_")),
            escape(needs)
        ));
    }
    if !span.agreed.is_empty() && counts.open > 0 {
        let agreed = escape(&span.agreed.join(", ")).into_owned();
        reasons.push(format!("begins have another {agreed}"));
    }
    if span.begin_needs.is_empty() && !counts.has_no_begins() {
        reasons.push("not every begin is reported".to_owned());
    }
    reasons
}

/// Whether another kind of spans has one of the events of a span, so that its name does not say from where to where it is.
fn shares_events(span: &SpanFacts, shown: &[&SpanFacts]) -> bool {
    let has =
        |other: &SpanFacts, event| other.starts.contains(event) || other.dones.contains(event);
    let mut others = shown.iter().filter(|other| other.name != span.name);
    others.any(|other| {
        span.starts
            .iter()
            .chain(&span.dones)
            .any(|event| has(other, event))
    })
}

/// Names of events without their providers.
fn bare(events: &[String]) -> String {
    let names = events.iter().map(|event| escape(bare_name(event)));
    names.collect::<Vec<_>>().join(",")
}

/// Remarks: from where to where spans are, by what they are matched, nesting, hits that belong to no span, and how exact percentiles are.
pub fn remarks(shown: &[&SpanFacts], all: &[&SpanFacts]) -> Vec<String> {
    let others = shown.iter().filter(|span| !is_by_thread(span));
    let mut remarks = matched_by(others.map(|span| named_rule(span, all)));
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
    each("from where to where", &|span| {
        shares_events(span, shown).then(|| format!("{}..{}", bare(&span.starts), bare(&span.dones)))
    });
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
    each("begins before a pause of their probes", &|span| {
        more(span.counts.paused_begins)
    });
    each("ends after a pause, without a beginning", &|span| {
        more(span.counts.paused_ends)
    });
    each("spans whose parts are not known", &|span| {
        unknown_parts(&span.durations)
    });
    let paused = shown
        .iter()
        .filter_map(|span| paused(span, &name(span, all)));
    remarks.extend(paused);
    remarks.extend(losses(shown, all));
    if shown.iter().any(|span| !span.durations.exact) {
        remarks.push("percentiles are within 0.4 %".to_owned());
    }
    remarks
}

/// `12 of 4068 (10 ended by another thread, …)`: of how many spans the parts are not known, and why.
fn unknown_parts(durations: &DurationFacts) -> Option<String> {
    let spent = durations.spent?;
    let unknown = durations.count.saturating_sub(spent.known);
    let reasons = spent.unknown().filter(|(_, count)| *count > 0);
    let reasons = reasons.map(|(reason, count)| format!("{count} {}", reason.words()));
    let reasons: Vec<String> = reasons.collect();
    let of = format!("{unknown} of {} ({})", durations.count, reasons.join(", "));
    (unknown > 0).then_some(of)
}

/// How much of the time spans were recorded in, and about how many there were.
fn paused(span: &SpanFacts, name: &str) -> Option<String> {
    let part = span.part.filter(|part| part.pauses > 0)?;
    let spans = match part.estimate(span.durations.count) {
        Some(spans) => format!("about {} spans at the same rate", about(spans)),
        None => "how many spans there were is not known".to_owned(),
    };
    Some(format!(
        "{name}: {}: {spans}; long ones are less than their share, and those that are longer than the time between two pauses are missing",
        recorded(&part)
    ))
}

/// What losses mean for spans.
fn losses(shown: &[&SpanFacts], all: &[&SpanFacts]) -> Option<String> {
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
        "hits of {of} were lost: some spans, most likely the longest, may have another one's end"
    ))
}

/// The columns of a table of spans. Where there are parts of their time, they have the room of some of the others.
fn columns(first: &str, has_parts: bool) -> Vec<&str> {
    if has_parts {
        let parts = TimePart::ALL.map(|part| part.spec().heading);
        return [&[first, "Count", "p50", "p99", "Sum"][..], &parts].concat();
    }
    vec![
        first, "Count", "p50", "p90", "p99", "p99.9", "max", "Sum", "Self", "Total",
    ]
}

/// The share of a time in another one.
pub(crate) fn share_cell(part: Option<u64>, whole: Option<u64>) -> TableCell {
    match part.zip(whole.filter(|whole| *whole > 0)) {
        Some((part, whole)) => TableCell::number(percent(part, whole), share(part, whole)),
        None => TableCell::unsorted("-"),
    }
}

/// The row below that of spans in which others are nested: the time outside these, and what it was spent on. `None` if it is that of the whole.
fn own_figures(durations: &DurationFacts) -> Option<Vec<TableCell>> {
    let spent = durations
        .spent
        .filter(|_| durations.own() < durations.sum())?;
    let own = duration(durations.own() as f64);
    let mut row = vec![TableCell::Text("  self".to_owned())];
    row.extend(["", "", "", own.as_str()].map(TableCell::unsorted));
    let total = spent.own_total();
    row.extend(TimePart::ALL.map(|part| share_cell(spent.own_part(part), total)));
    Some(row)
}

/// Adds below the last row what the threads of its spans waited for: shares of the time in no span of the kind within them, as those of the row are.
fn put_waits(durations: &DurationFacts, table: &mut Table) {
    let own = durations.own();
    let waits = durations.waits.iter().flatten();
    let long = waits.filter(|wait| share(wait.sum.ns, own) >= LEAST_WAIT);
    let words = long.filter_map(|WaitFacts { wait, sum }| {
        let wait = shortened(wait.as_ref()?, MAX_WAIT_CHARACTERS);
        Some(format!("{wait} {}", percent(sum.ns, own)))
    });
    let mut words: Vec<String> = words.take(MAX_WAITS).collect();
    if let (Some(first), Some(row)) = (words.first_mut(), table.rows.len().checked_sub(1)) {
        first.insert_str(0, "in ");
        table.below.insert(row, words);
    }
}

/// A row of spans.
fn figures(name: TableCell, durations: &DurationFacts, has_parts: bool) -> Vec<TableCell> {
    let cell = |ns: Option<u64>| match ns {
        Some(ns) => TableCell::number(duration(ns as f64), ns),
        None => TableCell::unsorted("-"),
    };
    let known = |ns| cell((durations.count > 0).then_some(ns));
    if has_parts {
        let spent = durations.spent;
        let total = spent.map(|spent| spent.total());
        let mut row = vec![
            name,
            TableCell::count(durations.count),
            known(durations.p50),
            known(durations.p99),
            cell(Some(durations.sum())),
        ];
        row.extend(
            TimePart::ALL.map(|part| share_cell(spent.map(|spent| spent.part(part)), total)),
        );
        return row;
    }
    vec![
        name,
        TableCell::count(durations.count),
        known(durations.p50),
        known(durations.p90),
        known(durations.p99),
        known(durations.p999),
        known(durations.max),
        cell(Some(durations.sum())),
        cell(Some(durations.own())),
        cell(durations.covered.map(|covered| covered.total)),
    ]
}

/// What spans are grouped by.
pub fn group_keys(report: &SpanReport) -> String {
    let names: Vec<&str> = report.by.iter().map(|by| &*by.name).collect();
    names.join(", ")
}

/// The table of the groups of a kind of spans.
pub fn group_table(report: &SpanReport, at: usize, first: &str) -> Table {
    let has_parts = has_parts(report, at);
    let mut table = Table::new(columns(first, has_parts));
    for group in report.groups.get(at).into_iter().flatten() {
        let keys = report.by.iter().map(|by| &by.key);
        let name = TableCell::Value(group_name(&cells(keys, &group.values, true)));
        let row = figures(name, &group.durations, has_parts);
        table.rows.push(row);
        table.rows.extend(own_figures(&group.durations));
        put_waits(&group.durations, &mut table);
    }
    table
}

/// Whether it is known of a kind of spans what their time was spent on.
fn has_parts(report: &SpanReport, at: usize) -> bool {
    let span = report.spans.get(at);
    span.is_some_and(|span| span.durations.spent.is_some())
}

/// A warning about groups that are not shown, if there were too many to keep all.
pub fn doubt(others: &OtherSpans, order: GroupOrder) -> Option<String> {
    let bound = others.doubtful?;
    let bound = match order {
        GroupOrder::Count => bound.to_string(),
        _ => duration(bound as f64),
    };
    Some(format!(
        "there were too many groups to keep all: one that is not shown may have up to {bound} of what they are sorted by"
    ))
}

fn put_groups(report: &SpanReport, at: usize, span: &str, style: AnswerStyle, out: &mut String) {
    let first = format!("{span} by {}", group_keys(report));
    let mut table = group_table(report, at, &first);
    let others = report.others.get(at).and_then(Option::as_ref);
    table.rows.extend(others.map(|others| {
        let name = more_groups(others.groups, style.hints);
        figures(
            TableCell::Text(name),
            &others.durations,
            has_parts(report, at),
        )
    }));
    if let Some(others) = others {
        put_waits(&others.durations, &mut table);
    }
    out.push('\n');
    put_table(&table, style.theme, out);
    if let Some(warning) = others.and_then(|others| doubt(others, report.order)) {
        folded_from("WARNING: ", &warning, "  ", style.theme, out);
    }
}

/// Appends the slowest spans, in at most so many lines: the slower ones first.
fn put_slowest(section: &Section, room: Option<usize>, style: AnswerStyle, out: &mut String) {
    let Section { name, slowest, .. } = section;
    if slowest.is_empty() {
        return;
    }
    let lines = |spans: &[String]| spans.iter().map(|span| span.lines().count()).sum::<usize>();
    // Besides the spans there are a blank line and the heading, and one with the number of those that are left out.
    let has_room =
        |spans: &[String], besides| room.is_none_or(|room| lines(spans) + besides <= room);
    let shown = match has_room(slowest, 2) {
        true => slowest.len(),
        false => {
            let numbers = (0..slowest.len()).rev();
            numbers
                .into_iter()
                .find(|&number| has_room(&slowest[..number], 3))
                .unwrap_or(0)
        }
    };
    out.push('\n');
    style.theme.put_heading(&format!("Slowest {name}"), out);
    out.extend(slowest.iter().take(shown).map(String::as_str));
    if let Some(more @ 1..) = slowest.len().checked_sub(shown) {
        let how = style.hints.in_brackets(&Hint::MoreGroups);
        let _ = writeln!(out, "{:>8} more{how}", more);
    }
}

/// How long a slow span was, when it began, and on which thread.
pub fn slow_cells(SlowFacts { slow, begin }: &SlowFacts, times: &ShownTimes) -> [TableCell; 3] {
    let (ns, began) = (slow.duration, slow.time.0);
    [
        TableCell::number(duration(ns as f64), ns),
        TableCell::number(times.shown(began, 6), began),
        TableCell::Text(format!("{} {}", begin.comm, begin.tid)),
    ]
}

/// The names and values of the arguments that the begin of a slow span has.
pub fn slow_arguments(begin: &SlowBegin) -> Vec<(&str, String)> {
    let there = begin.arguments.iter();
    let there = there.filter(|argument| argument.value != Value::Missing(Missing::Absent));
    let arguments = there.map(|argument| {
        let mut value = Text::default();
        value.formed(&argument.form.clone().plain(), &argument.value);
        (&*argument.name, value.into_string())
    });
    arguments.collect()
}

/// The lines of a slow span.
fn slow_span(slow: &SlowFacts, theme: Theme, times: &ShownTimes) -> String {
    let arguments = slow_arguments(&slow.begin).into_iter();
    let arguments = arguments.map(|(name, value)| format!("{}={value}", escape(name)));
    let parts = parts_or_reason(slow.slow.parts).map(|parts| format!("({parts})"));
    let arguments: Vec<String> = parts.into_iter().chain(arguments).collect();
    let cells = slow_cells(slow, times);
    let [duration, began, thread] = cells.each_ref().map(TableCell::shown);
    let start = format!("{duration:>8}  {began}  {thread}  ");
    let mut lines = String::new();
    folded_from(
        &start,
        &arguments.join(" "),
        &" ".repeat(10),
        theme,
        &mut lines,
    );
    lines
}

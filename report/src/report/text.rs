//! A report for people, at most 80 columns wide where names allow.

use std::fmt::Write as _;

use usdtrec_format::escape::{escape, quote};

use super::columns::{Side, WIDTH, folded, folded_from, put_columns};
use super::facts::{ArgumentFacts, Facts, Probe, Spread, TextFacts};
use super::numbers::{duration, percent, rate};
use super::spans::{SpanFacts, span_table};
use crate::text::Form;

/// Different values up to which they are listed.
const LISTED: usize = 16;

/// The report.
pub(super) fn render(facts: &Facts) -> String {
    let mut out = String::new();
    head(facts, &mut out);
    if facts.events == 0 {
        out.push_str("\nNo events.\n");
    } else {
        probes(facts, &mut out);
        spans(facts, &mut out);
        arguments(facts, &mut out);
    }
    losses(facts, &mut out);
    if facts.events > 0 {
        next(facts, &mut out);
    }
    out
}

/// The lines with `#` in front that every report begins with.
pub(super) fn head(facts: &Facts, out: &mut String) {
    let _ = writeln!(
        out,
        "# {}: {} event{} in {}, {}",
        escape(&facts.head.file),
        facts.events,
        if facts.events == 1 { "" } else { "s" },
        duration(facts.duration()),
        lost(facts)
    );
    for line in facts.head.lines() {
        let _ = writeln!(out, "# {line}");
    }
}

fn lost(facts: &Facts) -> String {
    match (facts.losses.total(), facts.losses.exact) {
        (total, true) => format!("{total} lost"),
        (0, false) if facts.head.engine.is_some() => "losses not known".to_owned(),
        (0, false) => "0 lost".to_owned(),
        (total, false) => format!("at least {total} lost"),
    }
}

/// A probe's name as a report shows it: without perf's `sdt_`.
pub(super) fn short(event: &str) -> &str {
    event.strip_prefix("sdt_").unwrap_or(event)
}

/// Names of probes without their providers, where that leaves no two the same.
struct ShortNames {
    bare: bool,
}

impl ShortNames {
    fn new(facts: &Facts) -> Self {
        let bare = facts.probes.iter().map(|probe| bare(&probe.event));
        let mut bare: Vec<&str> = bare.collect();
        let all = bare.len();
        bare.sort_unstable();
        bare.dedup();
        Self {
            bare: bare.len() == all,
        }
    }

    fn of<'e>(&self, event: &'e str) -> &'e str {
        if self.bare { bare(event) } else { short(event) }
    }
}

fn bare(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}

fn probes(facts: &Facts, out: &mut String) {
    let heading = ["Probe", "Events", "/s", "Share", "Processes", "Lost"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for probe in facts
        .probes
        .iter()
        .filter(|probe| probe.count > 0 || probe.lost > 0)
    {
        rows.push(vec![
            escape(short(&probe.event)).into_owned(),
            probe.count.to_string(),
            rate(probe.count, facts.duration()),
            percent(probe.count, facts.events),
            processes(probe),
            probe.lost.to_string(),
        ]);
    }
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Right,
    ];
    out.push('\n');
    put_columns(&rows, &sides, out);
    let silent: Vec<&str> = facts
        .probes
        .iter()
        .filter(|probe| probe.count == 0 && probe.lost == 0)
        .map(|probe| short(&probe.event))
        .collect();
    if !silent.is_empty() {
        let names = escape(&silent.join(", ")).into_owned();
        folded(&format!("without events: {names}"), "  ", out);
    }
}

/// `postgres (8)`: the name of most samples and the number of its processes; others are only counted.
fn processes(probe: &Probe) -> String {
    const LONGEST: usize = 24;
    let Some((name, count, _)) = probe.processes.first() else {
        return "-".to_owned();
    };
    let others = probe.processes.len() - 1;
    let beyond = probe.other_processes > 0;
    let mut text = format!("{name} ({count}{})", if beyond { "+" } else { "" });
    if others > 0 {
        let _ = write!(text, " and {others} more");
    }
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    text
}

fn spans(facts: &Facts, out: &mut String) {
    let any = |span: &SpanFacts| span.durations.count + span.open > 0;
    if facts.spans.iter().any(any) {
        out.push('\n');
        span_table(&facts.spans, out);
    }
}

fn arguments(facts: &Facts, out: &mut String) {
    let with_events = || facts.probes.iter().filter(|probe| probe.count > 0);
    let names = ShortNames::new(facts);
    let mut rows = vec![[
        "Argument".to_owned(),
        "Type".to_owned(),
        "What it holds".to_owned(),
    ]];
    let mut near = false;
    for probe in with_events() {
        for argument in &probe.arguments {
            near |= [&argument.integers, &argument.floats]
                .into_iter()
                .flatten()
                .any(|spread| !spread.exact);
            let name = format!("{}.{}", names.of(&probe.event), argument.name);
            rows.push([
                escape(&name).into_owned(),
                match &argument.unit {
                    Some(unit) => format!("{} {unit}", argument.kind),
                    None => argument.kind.clone(),
                },
                holds(argument),
            ]);
        }
    }
    if rows.len() == 1 {
        return;
    }
    let width = |column: usize, most: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.filter(|&length| length <= most).max().unwrap_or(0)
    };
    let (first, second) = (width(0, 34), width(1, 9));
    let indent = " ".repeat(first + second + 4);
    out.push('\n');
    for [name, kind, holds] in rows {
        let mut line = format!("{name:first$}  {kind:second$}  ");
        if line.chars().count() > indent.len() {
            let _ = writeln!(out, "{}", line.trim_end());
            line = indent.clone();
        }
        folded_from(&line, &holds, &indent, out);
    }
    if near {
        out.push_str("~ means: within 0.4 %\n");
    }
}

/// What an argument holds, in words.
fn holds(argument: &ArgumentFacts) -> String {
    let spreads = [&argument.integers, &argument.floats];
    let spreads = spreads.into_iter().flatten();
    let mut parts: Vec<String> = spreads
        .map(|numbers| spread(numbers, &argument.form))
        .collect();
    parts.extend(argument.texts.as_ref().map(texts));
    if argument.nan > 0 {
        parts.push(format!("NaN {} times", argument.nan));
    }
    for (reason, count) in &argument.missing {
        parts.push(format!("{count} missing: {}", escape(reason)));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts.join("; ")
}

fn spread(spread: &Spread, form: &Form) -> String {
    let shown = |number: &str| form.of_number(number);
    match &spread.values {
        Some(values) if values.len() == 1 => format!("always {}", shown(&spread.min)),
        Some(values) if values.len() <= LISTED => {
            let listed: Vec<String> = values
                .iter()
                .map(|(value, count)| format!("{} {}", percent(*count, spread.count), shown(value)))
                .collect();
            format!("{} values: {}", values.len(), listed.join(", "))
        }
        values if form.is_address() => match values {
            Some(values) => format!("{} addresses", values.len()),
            None => "many addresses".to_owned(),
        },
        _ => {
            let near = if spread.exact { "" } else { "~" };
            format!(
                "min {}, median {near}{}, max {}",
                shown(&spread.min),
                shown(&spread.median),
                shown(&spread.max)
            )
        }
    }
}

/// The most frequent texts, cut to what a line can show.
fn texts(texts: &TextFacts) -> String {
    const SHOWN: usize = 4;
    const LONGEST: usize = 32;
    let shown = |(text, count): &(Vec<u8>, u64)| {
        let mut quoted = String::new();
        quote(&mut quoted, text);
        if quoted.chars().count() > LONGEST {
            let start: String = quoted.chars().take(LONGEST - 2).collect();
            quoted = start + "…\"";
        }
        (quoted, *count)
    };
    let values = texts.values.iter().map(shown);
    match values.take(SHOWN).collect::<Vec<_>>().as_slice() {
        [(only, _)] if texts.exact => format!("always {only}"),
        values => {
            let listed: Vec<String> = values
                .iter()
                .map(|(text, count)| format!("{} {text}", percent(*count, texts.count)))
                .collect();
            let at_least = if texts.exact { "" } else { "more than " };
            let rest = if texts.different > values.len() {
                ", …"
            } else {
                ""
            };
            format!(
                "{at_least}{} values: {}{rest}",
                texts.different,
                listed.join(", ")
            )
        }
    }
}

fn losses(facts: &Facts, out: &mut String) {
    let losses = &facts.losses;
    let mut lines = Vec::new();
    for probe in facts.probes.iter().filter(|probe| probe.lost > 0) {
        let all = probe.lost.saturating_add(probe.count);
        lines.push(format!(
            "{}: {} of {all} ({})",
            escape(short(&probe.event)),
            probe.lost,
            percent(probe.lost, all)
        ));
    }
    if losses.others > 0 {
        lines.push(format!("of events not shown here: {}", losses.others));
    }
    if !losses.exact && (losses.total() > 0 || facts.head.engine.is_some()) {
        lines
            .push("the recorder did not live to count what was lost: there may be more".to_owned());
    }
    if !lines.is_empty() {
        out.push_str("\nLost\n");
        lines.iter().for_each(|line| folded(line, "  ", out));
    }
}

/// Command lines that lead on, with what they show.
fn next(facts: &Facts, out: &mut String) {
    let Some(probe) = facts.probes.first() else {
        return;
    };
    let file = &facts.head.file;
    let input = if file == "usdtrec.data" {
        String::new()
    } else {
        format!(" -i {}", shell_word(file))
    };
    let event = shell_word(short(&probe.event));
    let mut lines = vec![(
        format!("usdtrec report{input} --sort comm,event"),
        "who hits what",
    )];
    let few = probe.arguments.iter().find(|argument| {
        let spread = argument.integers.as_ref().or(argument.floats.as_ref());
        spread.is_some_and(|spread| spread.max != spread.min)
    });
    if let Some(argument) = few {
        lines.push((
            format!(
                "usdtrec report{input} -e {event} --sort {}",
                shell_word(&argument.name)
            ),
            "the most frequent values",
        ));
    }
    lines.push((
        format!("usdtrec script{input} -e {event} --time 0%-1%"),
        "its events, one by one",
    ));
    let length = |line: &str| line.chars().count();
    let width = lines
        .iter()
        .map(|(line, _)| length(line))
        .max()
        .unwrap_or(0);
    let fits = lines
        .iter()
        .all(|(_, what)| 2 + width + 2 + length(what) <= WIDTH);
    out.push_str("\nNext\n");
    for (line, what) in lines {
        let _ = if fits {
            writeln!(out, "  {line:width$}  {what}")
        } else {
            writeln!(out, "  {line}\n      {what}")
        };
    }
}

/// A word for a shell.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+@,=".contains(c);
    if word.chars().all(plain) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", escape(word).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_stay_one_word() {
        assert_eq!(shell_word("a/b.data"), "a/b.data");
        assert_eq!(shell_word("my file's"), "'my file'\\''s'");
    }
}

//! The way to the next question.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use usdtrec_format::escape::escape;

use crate::analysis::span_report::facts::SpanFacts;
use crate::analysis::summary::facts::Facts;
use crate::analysis::summary::probe::{ArgumentFacts, Probe, TextFacts};
use crate::analysis::summary::unusual::What;
use crate::stats::shape::shape;
use crate::trace::session::event_name::short_name as short;
use crate::view::columns::WIDTH;
use crate::view::report::short_names::bare;
use crate::view::text::form::time;
use crate::view::theme::Look;

/// A command line, and what it shows.
type Line = (String, &'static str);

/// Appends command lines that lead on.
pub(crate) fn put(facts: &Facts, look: Look, out: &mut String) {
    let Some(probe) = facts.probes.first() else {
        return;
    };
    let file = &facts.origin.file;
    let input = if file == "usdtrec.data" {
        String::new()
    } else {
        format!(" -i {}", shell_word(file))
    };
    let mut lines = of_spans(facts, &input);
    lines.extend(of_probe(probe, &input));
    if facts.busiest.all > 1 {
        let line = format!("usdtrec report{input} --sort comm,event");
        lines.push((line, "who hits what"));
    }
    let paced = |what: &What| matches!(what, What::Bursts(_) | What::Pauses(_));
    if facts.unusual.iter().any(|unusual| paced(&unusual.what)) {
        let tenth = facts.duration() / 50;
        let line = format!("usdtrec report{input} --rate {}", interval(tenth));
        lines.push((line, "how often, over time"));
    }
    let event = shell_word(short(&probe.event));
    let line = format!("usdtrec script{input} -e {event} --time 0%-1%");
    lines.push((line, "its events, one by one"));
    out.push('\n');
    look.put_heading("Next", out);
    put_lines(&lines, out);
}

/// What can be asked of the spans that took the most time.
fn of_spans(facts: &Facts, input: &str) -> Vec<Line> {
    let spans = facts.spans.iter().filter(|span| span.durations.count > 0);
    let mut spans: Vec<&SpanFacts> = spans.collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.durations.total));
    let Some(longest) = spans.first() else {
        return Vec::new();
    };
    let name = |span: &SpanFacts| {
        let others = facts.spans.iter();
        let same = others.filter(|other| bare(&other.name) == bare(&span.name));
        let alone = same.count() == 1;
        shell_word(if alone { bare(&span.name) } else { &span.name })
    };
    let mut lines = Vec::new();
    let by = spans
        .iter()
        .find_map(|span| Some((name(span), groups_of(facts, span)?)));
    if let Some((name, by)) = by {
        let line = format!("usdtrec report{input} --span {name} --by {by} --order p99");
        lines.push((line, "which one is slow"));
    }
    let name = name(longest);
    let line = format!("usdtrec report{input} --hist span:{name}");
    lines.push((line, "how the times are spread"));
    let line = format!("usdtrec report{input} --heatmap span:{name}");
    lines.push((line, "and over time"));
    lines
}

/// What to group a kind of spans by.
fn groups_of(facts: &Facts, span: &SpanFacts) -> Option<String> {
    let mut probes = facts.probes.iter();
    let begin = probes.find(|probe| span.starts.contains(&probe.event))?;
    // Statements with their numbers: nearly each one is different.
    let mut arguments = begin.arguments.iter();
    let shaped = |argument: &&ArgumentFacts| argument.texts.as_ref().is_some_and(has_shapes);
    if let Some(argument) = arguments.find(shaped) {
        return Some(shell_word(&format!("{}:shape", argument.name)));
    }
    told_apart(begin).map(|argument| shell_word(&argument.name))
}

/// Whether texts are fewer without their numbers and quoted texts.
fn has_shapes(texts: &TextFacts) -> bool {
    let shapes = texts.values.iter().map(|(text, _)| shape(text));
    let shapes: BTreeSet<Vec<u8>> = shapes.collect();
    shapes.len() < texts.values.len()
}

/// The argument of a probe that says most about which hit is which: with more than one value, but not as many as there are hits.
fn told_apart(probe: &Probe) -> Option<&ArgumentFacts> {
    let different = |argument: &ArgumentFacts| match (&argument.texts, &argument.integers) {
        (Some(texts), _) if texts.exact => texts.different,
        (None, Some(spread)) => spread.values.as_ref().map_or(0, Vec::len),
        _ => 0,
    };
    let arguments = probe.arguments.iter().filter(|argument| {
        let different = different(argument);
        different > 1 && (different as u64) * 2 <= probe.count
    });
    // Texts say more than numbers.
    arguments.min_by_key(|argument| argument.texts.is_none())
}

fn of_probe(probe: &Probe, input: &str) -> Option<Line> {
    let argument = shell_word(&told_apart(probe)?.name);
    let event = shell_word(short(&probe.event));
    let line = format!("usdtrec report{input} -e {event} --sort {argument}");
    Some((line, "its most frequent values"))
}

/// A round interval of about so many ns, as `--rate` takes it.
fn interval(ns: u64) -> String {
    let round = [1, 2, 5]
        .into_iter()
        .flat_map(|digit| (3..11).map(move |zeros| digit * 10_u64.pow(zeros)));
    let nearest = round
        .min_by_key(|round| round.abs_diff(ns))
        .unwrap_or(1_000_000);
    time(nearest as f64).trim_end_matches(".00").to_owned()
}

fn put_lines(lines: &[Line], out: &mut String) {
    let length = |line: &str| line.chars().count();
    let width = lines
        .iter()
        .map(|(line, _)| length(line))
        .max()
        .unwrap_or(0);
    let fits = lines
        .iter()
        .all(|(_, what)| 2 + width + 2 + length(what) <= WIDTH);
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

    #[test]
    fn intervals_are_round() {
        assert_eq!(interval(0), "1us");
        assert_eq!(interval(190_000_000), "200ms");
        assert_eq!(interval(1_100_000_000), "1s");
    }
}

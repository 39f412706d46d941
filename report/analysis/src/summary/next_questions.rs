//! Questions that lead on from a summary.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use usdtrec_trace::session::event_name::{bare_name, short_name};

use crate::span_report::facts::SpanFacts;
use crate::stats::shape::shape;
use crate::summary::facts::SummaryFacts;
use crate::summary::probe::{ArgumentFacts, ProbeFacts, StringFacts};
use crate::summary::unusual::UnusualKind;

/// A question that leads on from a summary. Events are named without perf's `sdt_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextQuestion {
    /// Which groups of spans are slow.
    SlowGroups {
        /// Name of the spans.
        span: String,
        /// The key of the groups.
        by: String,
    },
    /// The distribution of the durations of spans.
    Durations {
        /// Name of the spans.
        span: String,
    },
    /// The same question over time.
    DurationsOverTime {
        /// Name of the spans.
        span: String,
    },
    /// The most frequent values of an argument.
    Values {
        /// The event.
        event: String,
        /// The argument.
        argument: String,
    },
    /// Which process hits what.
    Processes,
    /// How often probes are hit.
    Rate {
        /// Length of the intervals, ns: 1, 2 or 5, and zeros.
        interval: u64,
    },
    /// The events of a probe.
    Events {
        /// The event.
        event: String,
    },
}

/// The questions that lead on; empty without events.
pub fn next_questions(facts: &SummaryFacts) -> Vec<NextQuestion> {
    let Some(probe) = facts.probes.first() else {
        return Vec::new();
    };
    let mut all = of_spans(facts);
    all.extend(distinguishing(probe).map(|argument| NextQuestion::Values {
        event: short_name(&probe.event).to_owned(),
        argument: argument.name.clone(),
    }));
    if facts.busiest.all > 1 {
        all.push(NextQuestion::Processes);
    }
    let paced =
        |what: &UnusualKind| matches!(what, UnusualKind::Bursts(_) | UnusualKind::Pauses(_));
    if facts.unusual.iter().any(|unusual| paced(&unusual.what)) {
        all.push(NextQuestion::Rate {
            interval: round(facts.duration() / 50),
        });
    }
    all.push(NextQuestion::Events {
        event: short_name(&probe.event).to_owned(),
    });
    all
}

/// What can be asked of the spans that took the most time.
fn of_spans(facts: &SummaryFacts) -> Vec<NextQuestion> {
    let spans = facts.spans.iter().filter(|span| span.durations.count > 0);
    let mut spans: Vec<&SpanFacts> = spans.collect();
    spans.sort_by_key(|span| Reverse(span.durations.total()));
    let Some(longest) = spans.first() else {
        return Vec::new();
    };
    let name = |span: &SpanFacts| {
        let others = facts.spans.iter();
        let same = others.filter(|other| bare_name(&other.name) == bare_name(&span.name));
        let alone = same.count() == 1;
        if alone {
            bare_name(&span.name).to_owned()
        } else {
            span.name.clone()
        }
    };
    let by = spans.iter().find_map(|span| {
        Some(NextQuestion::SlowGroups {
            by: groups_of(facts, &span.starts, |_, _| true)?,
            span: name(span),
        })
    });
    let span = name(longest);
    let durations = NextQuestion::Durations { span: span.clone() };
    by.into_iter()
        .chain([durations, NextQuestion::DurationsOverTime { span }])
        .collect()
}

/// The key to group the spans by that these events begin. `has_strings` says of an event and its argument whether strings are those of the program, so that they have
/// shapes.
pub(crate) fn groups_of(
    facts: &SummaryFacts,
    starts: &[String],
    has_strings: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    let mut probes = facts.probes.iter();
    let begin = probes.find(|probe| starts.contains(&probe.event))?;
    // Statements with their numbers: nearly each one is different.
    let mut arguments = own(begin);
    let shaped = |argument: &&ArgumentFacts| {
        argument.strings.as_ref().is_some_and(has_shapes)
            && has_strings(&begin.event, &argument.name)
    };
    if let Some(argument) = arguments.find(shaped) {
        return Some(format!("{}:shape", argument.name));
    }
    distinguishing(begin).map(|argument| argument.name.clone())
}

/// The arguments of the probe itself: others need an option.
fn own(probe: &ProbeFacts) -> impl Iterator<Item = &ArgumentFacts> {
    let arguments = probe.arguments.iter();
    arguments.filter(|argument| !argument.name.contains('.'))
}

/// Whether strings are fewer without their numbers and quoted strings.
fn has_shapes(strings: &StringFacts) -> bool {
    let shapes = strings.values.iter().map(|string| shape(&string.value));
    let shapes: BTreeSet<Vec<u8>> = shapes.collect();
    shapes.len() < strings.values.len()
}

/// The argument of a probe that says most about which hit is which: with more than one value, but not as many as there are hits.
fn distinguishing(probe: &ProbeFacts) -> Option<&ArgumentFacts> {
    let different = |argument: &ArgumentFacts| match (&argument.strings, &argument.integers) {
        (Some(strings), _) if strings.exact => strings.different,
        (None, Some(spread)) => spread.values.as_ref().map_or(0, Vec::len),
        _ => 0,
    };
    let arguments = own(probe).filter(|argument| {
        let different = different(argument);
        different > 1 && (different as u64) * 2 <= probe.count
    });
    // Strings say more than numbers.
    arguments.min_by_key(|argument| argument.strings.is_none())
}

/// A round interval of about so many ns.
fn round(ns: u64) -> u64 {
    let round = [1, 2, 5]
        .into_iter()
        .flat_map(|digit| (3..11).map(move |zeros| digit * 10_u64.pow(zeros)));
    let nearest = round.min_by_key(|round| round.abs_diff(ns));
    nearest.unwrap_or(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_round() {
        assert_eq!(round(0), 1_000);
        assert_eq!(round(190_000_000), 200_000_000);
        assert_eq!(round(1_100_000_000), 1_000_000_000);
    }
}

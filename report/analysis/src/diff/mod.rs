//! `diff`: two recordings side by side, what differs beyond noise first.
//!
//! A figure is beyond noise if 0 is not between the limits of the difference, or of the ratio, of both recordings' figures. The statistics, each by its name:
//!
//! * Percentiles: limits of order statistics, joined by the method of variance estimates recovery (MOVER) of their logarithms.
//! * Rates and shares: Welch's t, with the variance of the Poisson and the binomial distribution.
//! * Dependence in time: both recordings are tested for it together, by the slowest changes between their 20 slices and by the variance of slices. Where
//!   there is evidence, the variance is the long-run variance by these changes (equal-weighted cosine estimator; `dependence`), of percentiles
//!   that of the percentiles of slices (sectioning): what these exceed the variance of independent numbers by.
//! * Several figures: each kind of them (rates; shares; p50, p90 and p99 each of spans, of groups, of arguments) gives a false alarm in at most one of
//!   a hundred comparisons of like with like (Holm's method).
//!
//! More events never make a verdict unknown: it is where the limits of order statistics are beyond all numbers (p99 of fewer than 528), or where
//! fewer than three slices have any. `cargo bench --bench differences` prints how often like recordings are called different, and what is found. Load
//! that changes more slowly than a recording lasts is not seen within it: of like recordings whose slices resemble the next by 0.9 (the correlation
//! of an autoregressive series), some 3 of 100 are called different; with loads of so little effect that they are hardly seen, up to 7. That two runs
//! of one program differ for reasons that do not vary within a run, no recording can show: the least change that is shown (`DiffOptions::min`) is for
//! that.
//!
//! Probes are the same if they have the same name, whatever file, site and host they are of; arguments if they have the same name, or
//! the same place where one recording knows only that.
//!
//! Numbers that only rise in both recordings, as identifiers do, are left out. Counts by slice are stored and no
//! samples, so memory does not grow with the trace.

pub(crate) mod binomial;
pub mod compare_question;
pub mod comparison;
pub(crate) mod counts;
pub(crate) mod dependence;
pub(crate) mod difference;
pub(crate) mod frequent_strings;
pub(crate) mod hypothesis_test;
pub mod metric;
pub(crate) mod noise;
pub(crate) mod quantiles;
pub mod recording;
pub mod sides;
pub(crate) mod significance;
pub(crate) mod similarity;
pub mod slices;
pub mod span_groups;
pub mod spent_change;
pub(crate) mod strings;

use usdtrec_format::Pattern;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::time_span::TimeSpan;

use crate::diff::compare_question::{CompareQuestion, ComparedSpans};
use crate::diff::comparison::Comparison;
use crate::diff::recording::{ComparedRecording, RecordingQuestion};
use crate::diff::sides::Sides;
use crate::spans::common_integers::CommonIntegers;
use crate::spans::own_keys::own_integers;
use crate::spans::pair::Pair;

/// In how many of the comparisons of like with like some figure of a kind is called beyond noise, at most.
pub const FALSE_ALARMS: f64 = 0.01;

/// Compares the selected samples of two recordings; spans are grouped by keys, besides all together.
///
/// # Errors
/// [`ReportError::Question`] if neither has an event, argument or span that is requested, if times are requested (not parts of each
/// recording), or if one has no key to match or group by.
pub fn compare(
    sessions: Sides<&TraceSession>,
    selection: &EventSelection,
    question: CompareQuestion<'_>,
) -> Result<Comparison, ReportError> {
    let Sides { a, b } = sessions;
    let [mut of_a, mut of_b] = filters([a, b], selection)?;
    let found = [(a, &of_a), (b, &of_b)];
    let found = found.map(|(session, of)| {
        question.compared_spans(session, &of.filter, &had_of(session, selection))
    });
    if let [Err(error), Err(ReportError::Question(_))] = found {
        return Err(error);
    }
    let [of_a_spans, of_b_spans] = found.map(or_no_spans);
    (of_a.spans, of_b.spans) = (of_a_spans?, of_b_spans?);
    if question.spans.key.is_empty() {
        [of_a.integers, of_b.integers] = integers([(a, &of_a.spans.pairs), (b, &of_b.spans.pairs)]);
    }
    let is_lacking = |one: &RecordingQuestion, other: &RecordingQuestion| {
        one.spans.pairs.is_empty() && !other.spans.pairs.is_empty()
    };
    let lacking = Sides {
        a: is_lacking(&of_a, &of_b),
        b: is_lacking(&of_b, &of_a),
    };
    let recording = |session: &TraceSession, asked, is_lacking: bool| {
        let question = CompareQuestion {
            // Groups of the spans that the other one has alone.
            by: if is_lacking { &[] } else { question.by },
            ..question
        };
        ComparedRecording::new(session, asked, question).map_err(|error| match error {
            ReportError::Question(error) => ReportError::QuestionOfOne {
                path: session.path().to_owned(),
                error,
            },
            error => error,
        })
    };
    let (a, b) = (
        recording(a, of_a, lacking.a)?,
        recording(b, of_b, lacking.b)?,
    );
    Ok(Comparison::new(a, b, FALSE_ALARMS))
}

/// The spans of a recording; none if it does not have those that are named, or what selects them.
fn or_no_spans(found: Result<ComparedSpans, ReportError>) -> Result<ComparedSpans, ReportError> {
    match found {
        Err(ReportError::Question(_)) => Ok(ComparedSpans::default()),
        found => found,
    }
}

/// The integers of the pairs of both recordings, with what both say of those of one name.
fn integers(sides: [(&TraceSession, &Vec<Pair>); 2]) -> [Vec<CommonIntegers>; 2] {
    let own = sides.map(|(session, pairs)| own_integers(pairs, session));
    let with = |at: usize, other: usize| {
        let pairs = sides[at].1.iter().zip(&own[at]);
        let both = pairs.map(|(pair, integers)| {
            let mut others = sides[other].1.iter().zip(&own[other]);
            let same = others.find(|(known, _)| known.name == pair.name);
            let mut integers = integers.clone();
            same.into_iter().for_each(|(_, same)| integers.add(same));
            integers
        });
        both.collect()
    };
    [with(0, 1), with(1, 0)]
}

/// What each recording is asked, and why it has nothing of it, if so: that is an error only if neither has.
fn filters(
    sessions: [&TraceSession; 2],
    selection: &EventSelection,
) -> Result<[RecordingQuestion; 2], ReportError> {
    if !selection.time.as_ref().is_none_or(TimeSpan::is_relative) {
        return Err(QuestionError::TwoClocks.into());
    }
    let made = sessions.map(|session| SampleFilter::new(&had_of(session, selection), session));
    if let [Err(ReportError::Question(a)), Err(ReportError::Question(_))] = &made {
        return Err(a.clone().into());
    }
    let [a, b] = made;
    let [one, other] = sessions;
    Ok([or_nothing(a, one)?, or_nothing(b, other)?])
}

/// What a recording has of what is selected; all of it if it has none of the events, for the error.
fn had_of(session: &TraceSession, selection: &EventSelection) -> EventSelection {
    let has = |pattern: &Pattern| {
        let alone = EventSelection {
            events: vec![pattern.clone()],
            ..EventSelection::default()
        };
        SampleFilter::new(&alone, session).is_ok()
    };
    let mut had = selection.clone();
    had.events.retain(has);
    match had.events.is_empty() {
        true => selection.clone(),
        false => had,
    }
}

fn or_nothing(
    made: Result<SampleFilter, ReportError>,
    session: &TraceSession,
) -> Result<RecordingQuestion, ReportError> {
    match made {
        Ok(filter) => Ok(RecordingQuestion {
            filter,
            lacking: None,
            spans: ComparedSpans::default(),
            integers: Vec::new(),
        }),
        Err(ReportError::Question(reason)) => {
            let all = SampleFilter::new(&EventSelection::default(), session)?;
            Ok(RecordingQuestion {
                filter: all.relaxed(|_| false),
                lacking: Some(reason),
                spans: ComparedSpans::default(),
                integers: Vec::new(),
            })
        }
        Err(error) => Err(error),
    }
}

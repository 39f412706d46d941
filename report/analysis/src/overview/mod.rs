//! All that one page says of a trace: the summary, spans in detail, what happened when, and stacks.

pub mod numbers;
pub mod spans;

use std::cmp::Reverse;
use std::fmt::Debug;

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::answer::{Answer, AnswerQuestions as _, Facts, summary};
use crate::overview::numbers::NumberOverview;
use crate::overview::spans::SpanOverview;
use crate::question::{Question, SpanQuestion, StackKind, StackWeight};
use crate::rate::{Rates, rates};
use crate::samples::SelectedSamples;
use crate::spans::pair::Pair;
use crate::stacks::weighed::WeighedStacks;
use crate::stats::timeline::Timeline;
use crate::summary::facts::SummaryFacts;
use crate::summary::next_questions::groups_of;
use crate::summary::unusual::Unusual;

/// Kinds of spans that are shown in detail: each is a walk over the trace.
const MAX_SPANS: usize = 6;
/// Arguments whose numbers are shown in detail.
const MAX_NUMBERS: usize = 2;
/// Slowest spans of a kind, and groups.
const TOP: usize = 20;
/// Intervals in which events are counted.
const INTERVALS: usize = 60;

/// What a summary does not show, and so nothing that is chosen by it.
pub trait SummaryRedaction: Debug {
    /// Takes it out of a summary.
    fn redact(&self, summary: &mut SummaryFacts);

    /// Whether the strings of an argument of the events of a name are others than those of the program.
    fn replaces(&self, event: &str, argument: &str) -> bool;
}

/// Which spans and stacks are shown in detail.
#[derive(Clone, Copy, Debug)]
pub struct OverviewQuestion<'a> {
    /// `START..DONE`, or names with globs; if empty, those that are found by the names of probes.
    pub spans: &'a [String],
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: &'a [String],
    /// Shorter ones do not count, ns.
    pub min: u64,
    /// Which stacks are shown.
    pub stacks: StackKind,
    /// What is not shown of the summary.
    pub redaction: &'a dyn SummaryRedaction,
}

/// All answers of a page.
#[derive(Debug)]
pub struct Overview {
    /// The summary.
    pub summary: SummaryFacts,
    /// Whether the summary is of the events that pass the filter; else that is of spans alone.
    pub is_filtered: bool,
    /// Spans in detail, those with the longest total time first.
    pub spans: Vec<SpanOverview>,
    /// Kinds of spans without details, because there are too many.
    pub more_spans: usize,
    /// Kinds of spans without details, because the filter is not about them.
    pub unfiltered_spans: usize,
    /// Events of each probe over time; `None` without events.
    pub rates: Option<Rates>,
    /// The numbers of arguments.
    pub numbers: Vec<NumberOverview>,
    /// By hits, and by the time in the spans that come first; empty if there are no stacks.
    pub stacks: Vec<WeighedStacks>,
    /// What is wrong with the trace.
    pub notices: Notices,
}

/// A kind of span to be shown in detail.
struct SpanToShow {
    /// As questions name it.
    name: String,
    /// Keys of its groups.
    by: Vec<String>,
}

/// Answers all questions.
///
/// # Errors
/// [`ReportError::Question`] if the trace does not have what is selected or named.
pub fn overview(
    session: &TraceSession,
    selection: &EventSelection,
    question: OverviewQuestion<'_>,
) -> Result<Overview, ReportError> {
    let (filter, is_filtered) = filter_of_events(session, selection, question)?;
    let samples = SelectedSamples {
        session,
        filter: &filter,
    };
    let mut notices = Notices::new(session);
    let mut summary = summary(samples, &mut notices);
    question.redaction.redact(&mut summary);
    summary.unusual = Unusual::find(&summary.probes, None);
    let mut overview = Overview {
        summary,
        is_filtered,
        spans: Vec::new(),
        more_spans: 0,
        unfiltered_spans: 0,
        rates: None,
        numbers: Vec::new(),
        stacks: Vec::new(),
        notices,
    };
    overview.add_spans(session, selection, question)?;
    if overview.summary.events > 0 {
        overview.add_rates(samples)?;
        if question.spans.is_empty() {
            overview.add_numbers(samples)?;
        }
        overview.add_stacks(session, selection, question);
    }
    Ok(overview)
}

/// The filter of events, and whether the selection's expression is in it: that may have names which only spans have.
fn filter_of_events(
    session: &TraceSession,
    selection: &EventSelection,
    question: OverviewQuestion<'_>,
) -> Result<(SampleFilter, bool), ReportError> {
    match SampleFilter::new(selection, session) {
        Err(ReportError::Question(QuestionError::Filter { .. })) if !question.spans.is_empty() => {
            let all = EventSelection {
                filter: None,
                ..selection.clone()
            };
            Ok((SampleFilter::new(&all, session)?, false))
        }
        filter => Ok((filter?, true)),
    }
}

impl Overview {
    /// Asks, and joins what is found wrong.
    fn asked<T>(
        &mut self,
        session: &TraceSession,
        ask: impl FnOnce(&mut Notices) -> Result<T, ReportError>,
    ) -> Result<T, ReportError> {
        let mut notices = Notices::new(session);
        let answer = ask(&mut notices);
        self.notices.join(notices);
        answer
    }

    fn add_spans(
        &mut self,
        session: &TraceSession,
        selection: &EventSelection,
        question: OverviewQuestion<'_>,
    ) -> Result<(), ReportError> {
        let mut names = match question.spans {
            [] => self.seen_spans(),
            names => named_spans(session, names)?,
        };
        self.more_spans = names.len().saturating_sub(MAX_SPANS);
        names.truncate(MAX_SPANS);
        for name in names {
            let starts = starts(session, &name)?;
            let has_strings =
                |event: &str, argument: &str| !question.redaction.replaces(event, argument);
            let by = groups_of(&self.summary, &starts, has_strings);
            let shown = SpanToShow {
                by: by.into_iter().collect(),
                name,
            };
            match self.span(session, selection, &shown, question) {
                Ok(found) => self.spans.push(found),
                // The filter may have names that this one does not have.
                Err(ReportError::Question(_)) if question.spans.is_empty() => {
                    self.unfiltered_spans += 1;
                }
                Err(error) => return Err(error),
            }
        }
        let total = |found: &SpanOverview| -> u64 {
            let spans = found.report.spans.iter();
            let totals = spans.map(|span| span.durations.total());
            totals.fold(0, u64::saturating_add)
        };
        self.spans.sort_by_key(|found| Reverse(total(found)));
        Ok(())
    }

    /// Names of the spans that the summary has, those with the longest total time first.
    fn seen_spans(&self) -> Vec<String> {
        let seen = self.summary.spans.iter();
        let mut seen: Vec<_> = seen.filter(|span| span.counts.is_seen()).collect();
        seen.sort_by_key(|span| Reverse(span.durations.total()));
        let mut names: Vec<String> = Vec::new();
        for span in seen {
            if !names.contains(&span.name) {
                names.push(span.name.clone());
            }
        }
        names
    }

    fn span(
        &mut self,
        session: &TraceSession,
        selection: &EventSelection,
        shown: &SpanToShow,
        asked: OverviewQuestion<'_>,
    ) -> Result<SpanOverview, ReportError> {
        let mut question = SpanQuestion {
            spans: vec![shown.name.clone()],
            key: asked.key.to_vec(),
            by: shown.by.clone(),
            min: asked.min,
            top: Some(TOP),
            ..SpanQuestion::default()
        };
        let ask = |question: &SpanQuestion, notices: &mut Notices| {
            SpanOverview::new(session, selection, question, notices)
        };
        match self.asked(session, |notices| ask(&question, notices)) {
            // Not all spans of the name have the key of the groups.
            Err(ReportError::Question(_)) if !question.by.is_empty() => {
                question.by.clear();
                self.asked(session, |notices| ask(&question, notices))
            }
            answer => answer,
        }
    }

    fn add_rates(&mut self, samples: SelectedSamples<'_>) -> Result<(), ReportError> {
        let SelectedSamples { session, filter } = samples;
        let interval = Timeline::divided(session, filter, INTERVALS).interval;
        let found = self.asked(session, |notices| rates(samples, interval, &[], notices))?;
        self.rates = Some(found);
        Ok(())
    }

    fn add_numbers(&mut self, samples: SelectedSamples<'_>) -> Result<(), ReportError> {
        let names = numbers::names(&self.summary);
        for name in names.into_iter().take(MAX_NUMBERS) {
            let found = self.asked(samples.session, |notices| {
                NumberOverview::new(samples, &name, notices)
            })?;
            self.numbers.push(found);
        }
        Ok(())
    }

    /// Weighs the stacks, if there are any.
    fn add_stacks(
        &mut self,
        session: &TraceSession,
        selection: &EventSelection,
        asked: OverviewQuestion<'_>,
    ) {
        let mut weights = vec![StackWeight::Hits];
        let spans = self.spans.iter().flat_map(|found| &found.report.spans);
        let longest = spans.max_by_key(|span| span.durations.total());
        weights.extend(longest.map(|span| {
            StackWeight::Spans(SpanQuestion {
                spans: vec![span.name.clone()],
                key: asked.key.to_vec(),
                min: asked.min,
                ..SpanQuestion::default()
            })
        }));
        for weight in weights {
            let question = Question::Stacks {
                weight,
                of: asked.stacks,
            };
            match session.answer(selection, &question) {
                Ok(Answer {
                    facts: Facts::Stacks(stacks),
                    notices,
                }) if !stacks.tables.is_empty() => {
                    self.notices.join(notices);
                    self.stacks.push(stacks);
                }
                // There are none, or the filter is about other spans.
                _ => return,
            }
        }
    }
}

/// Names of the spans that are asked for, each once.
fn named_spans(session: &TraceSession, asked: &[String]) -> Result<Vec<String>, ReportError> {
    let mut names: Vec<String> = Vec::new();
    for text in asked {
        let pairs = match text.contains("..") {
            true => vec![text.clone()],
            false => {
                let pairs = Pair::asked(text, session)?;
                pairs.into_iter().map(|pair| pair.name).collect()
            }
        };
        for name in pairs {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// Names of the events that begin the spans of a name.
fn starts(session: &TraceSession, name: &str) -> Result<Vec<String>, ReportError> {
    let pairs = Pair::asked(name, session)?;
    let starts = pairs.iter().flat_map(|pair| &pair.starts);
    let events = starts.filter_map(|&event| session.events().events.get(event));
    Ok(events.map(|event| event.name.clone()).collect())
}

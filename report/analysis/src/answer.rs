//! A question answered.

use usdtrec_format::perf::Sample;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::Resolver;

use crate::groups::{self, GroupQuestion, Grouped};
use crate::heatmap::{HeatMaps, heat_maps};
use crate::histogram::{Histograms, histograms};
use crate::question::{Question, SpanQuestion};
use crate::rate::{Rates, rates};
use crate::rows::row_walk::asked_pairs;
use crate::samples::SelectedSamples;
use crate::span_report::facts::{SpanFacts, SpanReport};
use crate::span_report::request::SpanRequest;
use crate::span_report::{facts as span_facts, spans};
use crate::spans::pair::filter_of_pairs;
use crate::spans::walk::{SpanWalk, Spans};
use crate::spans::with_samples::{SpansBeside, fold_with_spans};
use crate::stacks::weigh::weigh;
use crate::stacks::weighed::WeighedStacks;
use crate::stats::bursts::Slices;
use crate::summary::counts::Summary;
use crate::summary::facts::{SummaryCounts, SummaryFacts};
use crate::summary::frequent_strings::{StringsOfArgument, recount};

/// What is found about a question: numbers are numbers, reasons are variants, and strings of traced programs are as they are.
#[derive(Debug)]
pub enum Facts {
    /// To [`Question::Summary`].
    Summary(Box<SummaryFacts>),
    /// To [`Question::Groups`].
    Groups(Grouped),
    /// To [`Question::Spans`].
    Spans(SpanReport),
    /// To [`Question::Histogram`].
    Histogram(Histograms),
    /// To [`Question::Heatmap`].
    HeatMap(HeatMaps),
    /// To [`Question::Rate`].
    Rate(Rates),
    /// To [`Question::Stacks`].
    Stacks(WeighedStacks),
}

/// The answer to a question.
#[derive(Debug)]
pub struct Answer {
    /// What is found.
    pub facts: Facts,
    /// What is wrong with the trace.
    pub notices: Notices,
}

/// Answers questions.
pub trait AnswerQuestions {
    /// Answers a question about the selected events. The trace is read at once.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace has no event or argument that is requested.
    fn answer(
        &self,
        selection: &EventSelection,
        question: &Question,
    ) -> Result<Answer, ReportError>;
}

impl AnswerQuestions for TraceSession {
    fn answer(
        &self,
        selection: &EventSelection,
        question: &Question,
    ) -> Result<Answer, ReportError> {
        let filter = match question.spans() {
            Some(question) => filter_of_spans(self, selection, question)?,
            None => SampleFilter::new(selection, self)?,
        };
        let samples = SelectedSamples {
            session: self,
            filter: &filter,
        };
        let mut notices = Notices::new(self);
        match question {
            // The answers say it themselves.
            Question::Summary | Question::Spans(_) => {}
            _ => notices.set_paused(self, &filter),
        }
        let facts = match question {
            Question::Summary => Facts::Summary(Box::new(summary(samples, &mut notices))),
            Question::Groups {
                sort,
                value,
                top,
                order,
            } => {
                let asked = GroupQuestion {
                    sort,
                    value: value.as_deref(),
                    top: *top,
                    order: *order,
                };
                Facts::Groups(groups::grouped(samples, asked, &mut notices)?)
            }
            Question::Spans(question) => {
                let request = SpanRequest { samples, question };
                Facts::Spans(spans(request, &mut notices)?)
            }
            Question::Histogram { of, scale } => {
                let found = histograms(samples, of, *scale, &mut notices)?;
                Facts::Histogram(found)
            }
            Question::Heatmap(of) => Facts::HeatMap(heat_maps(samples, of, &mut notices)?),
            Question::Rate { interval, sort } => {
                Facts::Rate(rates(samples, *interval, sort, &mut notices)?)
            }
            Question::Stacks { weight, of } => {
                Facts::Stacks(weigh(samples, weight, *of, &mut notices)?)
            }
        };
        Ok(Answer { facts, notices })
    }
}

/// The filter where an expression may be about what ends spans, too.
pub(crate) fn filter_of_spans(
    session: &TraceSession,
    selection: &EventSelection,
    question: &SpanQuestion,
) -> Result<SampleFilter, ReportError> {
    let pairs = asked_pairs(&question.spans, session, |_| true)?;
    filter_of_pairs(&pairs, selection, session)
}

/// Sums up all samples.
pub(crate) fn summary(samples: SelectedSamples<'_>, notices: &mut Notices) -> SummaryFacts {
    let SelectedSamples { session, filter } = samples;
    let rows = Rows::new(session, |event| filter.event(event));
    let mut counted = walk(samples, &rows, notices);
    recount_strings(samples, &rows, &mut counted.summary, notices);
    SummaryFacts::new(samples, &rows, counted, notices.placed_damage().collect())
}

/// Sums up all samples, and matches the spans that are found by the names of probes.
fn walk(samples: SelectedSamples<'_>, rows: &Rows, notices: &mut Notices) -> SummaryCounts {
    let SelectedSamples { session, filter } = samples;
    let slices = Slices::new(session);
    let make = || Summary::new(rows, slices);
    let add = |summary: &mut Summary, resolver: &mut Resolver<'_>, target, sample: &Sample<'_>| {
        summary.add(rows, resolver, target, sample);
    };
    let found = |walk: &SpanWalk<'_>, found: Spans| -> Vec<SpanFacts> {
        notices.add_forgotten(found.forgotten);
        span_facts(walk, &found)
    };
    let spans = SpansBeside::find(session, filter, rows);
    let walked = fold_with_spans(session, filter, rows, spans, make, add, found);
    notices.add(walked.outcome);
    let summary = walked.states.into_iter().reduce(Summary::merge);
    SummaryCounts {
        summary: summary.unwrap_or_else(|| Summary::new(rows, slices)),
        spans: walked.spans.unwrap_or_default(),
    }
}

/// Counts the strings of arguments that have too many once more.
fn recount_strings(
    samples: SelectedSamples<'_>,
    rows: &Rows,
    summary: &mut Summary,
    notices: &mut Notices,
) {
    let mut strings = Vec::new();
    let mut first = Vec::new();
    for sums in &mut summary.rows {
        first.push((strings.len(), sums.arguments.len()));
        let arguments = sums.arguments.iter_mut();
        strings.extend(arguments.map(|argument| &mut argument.strings));
    }
    let places = rows.of_event.iter().map(|row| {
        let (first, arguments) = row
            .and_then(|row| first.get(row).copied())
            .unwrap_or((0, 0));
        let arguments = (0..arguments).map(|argument| StringsOfArgument {
            strings: first + argument,
            argument,
        });
        arguments.collect()
    });
    let places: Vec<Vec<StringsOfArgument>> = places.collect();
    recount(samples, &mut strings, &places, notices);
}

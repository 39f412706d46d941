//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

pub(crate) mod arguments;
pub(crate) mod busiest;
pub(crate) mod data;
pub(crate) mod groups;
pub(crate) mod losses;
pub(crate) mod next;
pub(crate) mod probes;
pub(crate) mod spans;
pub(crate) mod spans_data;
pub(crate) mod text;
pub(crate) mod unusual;

use std::io::Write;

use crate::analysis::groups::GroupQuestion;
pub use crate::analysis::question::{Question, Scale, Subject, ValueOrder};
use crate::analysis::span_report::SpanRequest;
use crate::analysis::span_report::facts::SpanFacts;
pub use crate::analysis::span_report::{SpanOrder, SpanQuestion};
use crate::analysis::spans::beside::fold_with_spans;
use crate::analysis::spans::pair::Pair;
use crate::analysis::spans::walk::{SpanWalk, Spans};
use crate::analysis::summary::counts::{Rows, Summary};
use crate::analysis::summary::facts::Facts;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::span_filter::Ends;
use crate::events::selection::{Filter, Selection};
use crate::stats::bursts::Slices;
use crate::trace::session::Session;
use crate::trace::session::resolver::Resolver;
use crate::view::script::Format;
use crate::view::theme::Look;
pub use crate::view::top::{TopOptions, top};
use usdtrec_format::perf::Sample;

/// How a trace is summed up.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// What is asked.
    pub question: Question,
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub human: bool,
    /// How it looks.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
}

impl ReportOptions {
    pub(crate) fn look(&self) -> Look {
        Look::new(self.colours)
    }
}

/// Sums up the samples that a selection asks for.
///
/// # Errors
/// [`ReportError::Ask`] if the trace has no event or argument that is asked for, [`ReportError::Write`] if `out` fails.
pub fn report(
    session: &Session,
    selection: &Selection,
    options: &ReportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let filter = match options.question.spans() {
        Some(question) => {
            let pairs = Pair::asked(&question.span, session)?;
            let of = |side: fn(&Pair) -> &Vec<usize>| pairs.iter().flat_map(side).copied();
            let starts: Vec<usize> = of(|pair| &pair.starts).collect();
            let dones: Vec<usize> = of(|pair| &pair.dones).collect();
            let ends = Ends {
                starts: &starts,
                dones: &dones,
            };
            Filter::of_spans(selection, session, ends)?
        }
        None => Filter::new(selection, session)?,
    };
    let (text, notices) = match &options.question {
        Question::Summary => sum_up(session, &filter, options),
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
            crate::analysis::groups::report(session, &filter, asked, options)?
        }
        Question::Spans(question) => crate::analysis::span_report::report(SpanRequest {
            session,
            filter: &filter,
            question,
            options,
        })?,
        Question::Histogram { of, scale } => {
            crate::analysis::histogram::report(session, &filter, (of, *scale), options)?
        }
        Question::Heatmap(of) => crate::analysis::heatmap::report(session, &filter, of, options)?,
        Question::Rate { interval, sort } => {
            crate::analysis::rate::report(session, &filter, (*interval, sort), options)?
        }
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(notices)
}

fn sum_up(session: &Session, filter: &Filter, options: &ReportOptions) -> (String, Notices) {
    let rows = Rows::new(session, |event| filter.event(event));
    let mut notices = Notices::new(session);
    let (spans, states) = walk(session, filter, &rows, &mut notices);
    let mut summary = states
        .into_iter()
        .reduce(Summary::merge)
        .unwrap_or_else(|| Summary::new(&rows, Slices::new(session)));
    recount_texts(session, filter, (&rows, &mut summary), &mut notices);
    let facts = Facts::new(
        session,
        (&rows, filter),
        summary,
        spans,
        notices.damage.clone(),
        options.human,
    );
    let text = match options.format {
        Format::Text => text::render(&facts, options.look()),
        Format::Json => data::json(&facts),
        format => data::csv(format.csv(), &facts),
    };
    (text, notices)
}

/// Sums up all samples, and matches spans where names of probes tell of any.
fn walk(
    session: &Session,
    filter: &Filter,
    rows: &Rows,
    notices: &mut Notices,
) -> (Vec<SpanFacts>, Vec<Summary>) {
    let slices = Slices::new(session);
    let make = || Summary::new(rows, slices);
    let add = |summary: &mut Summary, resolver: &mut Resolver<'_>, target, sample: &Sample<'_>| {
        summary.add(rows, resolver, target, sample);
    };
    let found = |walk: &SpanWalk<'_>, found: Spans| {
        notices.tell_forgotten(found.forgotten);
        crate::analysis::span_report::facts(walk, &found)
    };
    let asked = (rows, Vec::new());
    let (spans, states, outcome) = fold_with_spans(session, filter, asked, make, add, found);
    notices.add(outcome);
    (spans.unwrap_or_default(), states)
}

/// Counts the texts of arguments that have too many once more.
fn recount_texts(
    session: &Session,
    filter: &Filter,
    (rows, summary): (&Rows, &mut Summary),
    notices: &mut Notices,
) {
    let mut texts = Vec::new();
    let mut first = Vec::new();
    for sums in &mut summary.rows {
        first.push((texts.len(), sums.arguments.len()));
        let arguments = sums.arguments.iter_mut();
        texts.extend(arguments.map(|argument| &mut argument.texts));
    }
    let places = rows.of_event.iter().map(|row| {
        let (first, arguments) = row
            .and_then(|row| first.get(row).copied())
            .unwrap_or((0, 0));
        (0..arguments).map(|place| (first + place, place)).collect()
    });
    let places: Vec<Vec<(usize, usize)>> = places.collect();
    crate::analysis::summary::recount::recount(session, filter, &mut texts, &places, notices);
}

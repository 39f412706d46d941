//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

mod argument;
mod bars;
mod busiest;
pub(crate) mod columns;
pub(crate) mod data;
pub(crate) mod distribution;
mod facts;
pub(crate) mod groups;
pub(crate) mod head;
pub(crate) mod heatmap;
mod histogram;
pub(crate) mod log2;
pub(crate) mod look;
pub(crate) mod losses;
pub(crate) mod number;
pub(crate) mod numbers;
pub(crate) mod pace;
mod question;
mod rate;
mod spans;
pub(crate) mod summary;
pub(crate) mod text;
mod texts;
pub(crate) mod timeline;
mod top;
mod unusual;
mod values;

use std::io::Write;

use self::facts::Facts;
use self::look::Look;
use self::pace::Slices;
pub use self::question::{Question, Scale, Subject};
use self::spans::SpanFacts;
pub use self::spans::{SpanOrder, SpanQuestion};
use self::summary::{Rows, Summary};
pub use self::top::{TopOptions, top};
use crate::error::ReportError;
use crate::notice::Notices;
use crate::script::Format;
use crate::select::{Filter, Selection};
use crate::session::{Resolver, Session};
use crate::span::{SpanWalk, Spans, fold_with_spans};
use usdtrec_format::perf::Sample;

/// How a trace is summed up.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// What is asked.
    pub question: Question,
    /// Whether tables of groups show the number of samples.
    pub show_samples: bool,
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub human: bool,
    /// How it looks.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
}

impl ReportOptions {
    fn look(&self) -> Look {
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
    let filter = Filter::new(selection, session)?;
    let (text, notices) = match &options.question {
        Question::Summary => sum_up(session, &filter, options),
        Question::Groups { sort, value, top } => {
            let asked = (sort.as_slice(), value.as_deref(), *top);
            groups::report(session, &filter, asked, options)?
        }
        Question::Spans(question) => spans::report(session, &filter, question, options)?,
        Question::Histogram { of, scale } => {
            histogram::report(session, &filter, (of, *scale), options)?
        }
        Question::Heatmap(of) => heatmap::report(session, &filter, of, options)?,
        Question::Rate { interval, sort } => {
            rate::report(session, &filter, (*interval, sort), options)?
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
    let summary = states
        .into_iter()
        .reduce(Summary::merge)
        .unwrap_or_else(|| Summary::new(&rows, Slices::new(session)));
    let facts = Facts::new(
        session,
        &rows,
        summary,
        spans,
        notices.damage.clone(),
        options.human,
    );
    let text = match options.format {
        Format::Text => text::render(&facts, options.look()),
        Format::Json => data::json(&facts),
        Format::Csv => data::csv(&facts),
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
        spans::facts(walk, &found)
    };
    let asked = (rows, Vec::new());
    let (spans, states, outcome) = fold_with_spans(session, filter, asked, make, add, found);
    notices.add(outcome);
    (spans.unwrap_or_default(), states)
}

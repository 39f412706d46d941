//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

mod argument;
mod data;
mod distribution;
mod facts;
mod groups;
mod head;
mod losses;
mod number;
mod numbers;
mod summary;
mod text;
mod texts;

use std::io::Write;

use self::facts::Facts;
use self::summary::{Rows, Summary};
use crate::error::ReportError;
use crate::fold::fold;
use crate::notice::Notices;
use crate::script::Format;
use crate::select::{Filter, Selection};
use crate::session::Session;

/// How a trace is summed up.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// Keys to group by: `event`, `comm`, `pid`, `tid`, `cpu`, `dso`, `sym`, or names of arguments. Empty for
    /// the report of all probes.
    pub sort: Vec<String>,
    /// Whether tables of groups show the number of samples.
    pub show_samples: bool,
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub human: bool,
    /// How it looks.
    pub format: Format,
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
    let (text, notices) = if options.sort.is_empty() {
        sum_up(session, &filter, options)
    } else {
        groups::report(session, &filter, options)?
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(notices)
}

fn sum_up(session: &Session, filter: &Filter, options: &ReportOptions) -> (String, Notices) {
    let rows = Rows::new(session, |event| filter.event(event));
    let (states, outcome) = fold(
        session,
        filter,
        || Summary::new(&rows),
        |summary, resolver, target, sample| summary.add(&rows, resolver, target, sample),
    );
    let summary = states
        .into_iter()
        .reduce(Summary::merge)
        .unwrap_or_else(|| Summary::new(&rows));
    let mut notices = Notices::new(session);
    notices.add(outcome);
    let facts = Facts::new(
        session,
        &rows,
        summary,
        notices.damage.clone(),
        options.human,
    );
    let text = match options.format {
        Format::Text => text::render(&facts),
        Format::Json => data::json(&facts),
        Format::Csv => data::csv(&facts),
    };
    (text, notices)
}

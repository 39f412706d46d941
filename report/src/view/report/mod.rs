//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

pub(crate) mod arguments;
pub(crate) mod busiest;
pub(crate) mod data;
pub(crate) mod groups;
pub(crate) mod heatmap;
pub(crate) mod histogram;
pub(crate) mod losses;
pub(crate) mod next;
pub(crate) mod probes;
pub(crate) mod rate;
pub(crate) mod short_names;
pub(crate) mod spans;
pub(crate) mod spans_data;
pub(crate) mod text;
pub(crate) mod unusual;

use std::io::Write;

use crate::analysis::answer::{Answer, answer};
use crate::analysis::origin::Origin;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::Selection;
use crate::trace::session::Session;
use crate::view::format::Format;
use crate::view::theme::Look;

pub use crate::analysis::question::{
    Question, Scale, SpanOrder, SpanQuestion, Subject, ValueOrder,
};
pub use crate::view::top::{TopOptions, top};

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

/// Groups of spans that text shows if nothing is said; other formats have all.
const GROUPS: usize = 10;

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
    let groups = match options.format {
        Format::Text => GROUPS,
        Format::Json | Format::Csv | Format::CsvRaw => usize::MAX,
    };
    let (answer, notices) = answer(session, selection, &options.question, groups)?;
    let text = match options.format {
        Format::Text => in_text(&answer, session, options),
        Format::Json => in_json(&answer),
        format => in_csv(&answer, format),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(notices)
}

fn in_text(answer: &Answer, session: &Session, options: &ReportOptions) -> String {
    let (look, human) = (Look::new(options.colours), options.human);
    match answer {
        Answer::Summary(facts) => text::render(facts, human, look),
        Answer::Groups(grouped) => groups::text(grouped, human, look),
        Answer::Spans(report) => spans::render(report, human, look),
        Answer::Histogram(found) => histogram::text(&Origin::new(session), found, human, look),
        Answer::HeatMap(maps) => heatmap::text(&Origin::new(session), maps, human, look),
        Answer::Rate(rates) => rate::text(rates, human, look),
    }
}

fn in_json(answer: &Answer) -> String {
    match answer {
        Answer::Summary(facts) => data::json(facts),
        Answer::Groups(grouped) => groups::json(grouped),
        Answer::Spans(report) => spans_data::json(report),
        Answer::Histogram(found) => histogram::json(found),
        Answer::HeatMap(maps) => heatmap::json(maps),
        Answer::Rate(rates) => rate::json(rates),
    }
}

fn in_csv(answer: &Answer, format: Format) -> String {
    let csv = format.csv();
    match answer {
        Answer::Summary(facts) => data::csv(csv, facts),
        Answer::Groups(grouped) => groups::csv(csv, grouped),
        Answer::Spans(report) => spans_data::csv(csv, report),
        Answer::Histogram(found) => histogram::csv(csv, found),
        Answer::HeatMap(maps) => heatmap::csv(csv, maps),
        Answer::Rate(rates) => rate::csv(csv, rates),
    }
}

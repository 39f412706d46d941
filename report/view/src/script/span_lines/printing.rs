//! Lines of the spans of a trace.

use std::io::Write;

use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk};
use usdtrec_analysis::rows::span_question::SpanRowQuestion;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;
use crate::script::span_lines::style::SpanStyle;
use crate::script::span_lines::writer::SpanWriter;

/// Prints the spans of a trace.
///
/// # Errors
/// Those of [`print`](crate::script::print).
pub(crate) fn print_spans(
    session: &TraceSession,
    selection: &EventSelection,
    question: &SpanRowQuestion,
    options: &ScriptOptions,
    out: &mut (dyn Write + Send),
) -> Result<Notices, ReportError> {
    let walk = RowWalk::new(session, selection, &RowQuestion::from(question))?;
    let style = SpanStyle::new(session, &walk.pairs, options)?;
    if let Some(header) = style.header() {
        out.write_all(header.as_bytes())?;
    }
    let mut before = PreviousTimes::default();
    let mut notices = Notices::new(session);
    let mut writer = SpanWriter::new(session, &style, &mut before, out);
    let walk = walk.at_least(question.least);
    walk.run(&mut writer, &mut notices)?;
    writer.finish()?;
    Ok(notices)
}

//! `export`: the events and spans of a trace in the formats of other programs.
//!
//! Each format is a folder that implements [`RowSink`](crate::analysis::rows::row_sink::RowSink), or shows the weighed stacks of a trace, and
//! uses none of the others. What several formats need of a timeline is in the files next to them.

pub(crate) mod chrome;
pub(crate) mod export_format;
pub(crate) mod export_options;
pub(crate) mod lanes;
pub(crate) mod thread_names;

use std::io::Write;

use crate::analysis::rows::row_walk::{RowQuestion, RowWalk};
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::EventSelection;
use crate::trace::session::TraceSession;
use crate::view::export::chrome::ChromeTrace;

pub use crate::view::export::export_format::ExportFormat;
pub use crate::view::export::export_options::ExportOptions;

/// Writes the selected events and spans.
///
/// # Errors
/// [`ReportError::Question`] if the trace does not have what is requested; [`ReportError::Write`] if `out` fails. What was written until then is
/// not complete.
pub fn write(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let question = RowQuestion {
        spans: options.spans.clone(),
        key: options.key.clone(),
        stacks: true,
    };
    let walk = RowWalk::new(session, selection, &question)?;
    let mut notices = Notices::new(session);
    match options.format {
        ExportFormat::Chrome => {
            let mut sink = ChromeTrace::new(session, &walk, out)?;
            walk.run(&mut sink, &mut notices)?;
            sink.finish()?;
        }
    }
    out.flush()?;
    Ok(notices)
}

//! `script`: a trace's samples, one line each, in the order of time; or its spans.

pub(crate) mod arguments;
pub(crate) mod choice;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod line_field;
pub(crate) mod live;
pub(crate) mod options;
pub(crate) mod row_writer;
pub(crate) mod span_lines;
pub(crate) mod span_text;
pub(crate) mod spans;
pub(crate) mod template;
pub(crate) mod text;
pub(crate) mod text_frames;
pub(crate) mod times;
pub(crate) mod writer;

use std::io::Write;

use usdtrec_analysis::spans::ends::EndsWorker;
use usdtrec_analysis::spans::matcher::OpenSpans;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::order::{Window, in_order};
use usdtrec_trace::events::outcome::ReadOutcome;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::pool::Pool;
use usdtrec_trace::session::TraceSession;

use crate::script::row_writer::LineStyle;
use crate::script::span_lines::print_spans;
use crate::script::spans::{SpanColumn, WindowText};
use crate::script::writer::Writer;
use crate::text::buffer::Text;

pub use crate::script::choice::FieldChoice;
pub use crate::script::live::print_stream;
pub use crate::script::options::{ScriptOptions, StreamOutput};
pub use crate::script::template::Template;
pub use crate::script::template::error::{SpecPart, TemplateError, TemplateErrorKind};
pub use crate::script::times::TimeOrigin;
pub use usdtrec_analysis::rows::row_walk::SpanRowQuestion;
pub use usdtrec_trace::fields::{Field, Fields, process_field_named, process_field_names};

/// Prints the selected samples.
///
/// # Errors
/// [`ReportError::Question`] if the trace has no event or argument that is requested or does not have the time of day that is, [`ReportError::Write`] if `out` fails.
pub fn print(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ScriptOptions,
    out: &mut (dyn Write + Send),
) -> Result<Notices, ReportError> {
    if let Some(question) = &options.spans {
        return print_spans(session, selection, question, options, out);
    }
    let filter = SampleFilter::new(selection, session)?;
    let style = LineStyle::new(session, &filter, &[], options)?;
    if let Some(header) = style.header() {
        out.write_all(header.as_bytes())?;
    }
    let spans = SpanColumn::new(session, &filter, options)?;
    let calls = style.calls();
    let workers = Pool::default();
    let renderers = Pool::default();
    let buffers = Pool::<Text>::default();
    let show = |window: Window<'_>| {
        let mut lines = renderers.take().unwrap_or_else(|| style.writer(session));
        let mut text = buffers.take().unwrap_or_default();
        let shown = match &spans {
            Some(spans) => {
                let mut worker = workers
                    .take()
                    .unwrap_or_else(|| EndsWorker::new(session, Some(&spans.ends)));
                let lines = &mut *lines;
                let shown = spans.window(session, &filter, window, lines, &mut worker, text);
                workers.put(worker);
                shown
            }
            None => {
                let short = lines.window(window, &mut text);
                WindowText::new(text, short)
            }
        };
        renderers.put(lines);
        shown
    };
    let read = spans
        .as_ref()
        .map(|spans| spans.ends.relaxed(session, &filter));
    let mut open = spans
        .as_ref()
        .map_or_else(OpenSpans::default, |spans| spans.ends.open());
    let mut notices = Notices::new(session);
    notices.set_paused(session, &filter);
    let outcome = std::thread::scope(|scope| {
        let mut writer = Writer::start(scope, out, &buffers);
        let read = read.as_ref().unwrap_or(&filter);
        let outcome = in_order(session, read, calls, show, |shown| {
            notices.unknown += shown.short;
            writer.write(match &spans {
                Some(spans) => spans.fill(shown, &mut open),
                None => shown.text,
            })
        });
        writer.finish()?;
        outcome.or(Ok::<_, ReportError>(ReadOutcome::default()))
    })?;
    notices.add(outcome);
    Ok(notices)
}

//! Writes what is selected in one of the formats.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use usdtrec_analysis::answer::{Answer, AnswerQuestions as _, Facts};
use usdtrec_analysis::question::{Question, SpanQuestion, StackWeight};
use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk};
use usdtrec_analysis::stacks::weighed::WeighedStacks;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::{EmptyExport, Notices};
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::export_format::{ExportFormat, RowFormat, StackFormat};
use crate::export_options::ExportOptions;
use crate::otlp::{OtlpEvents, OtlpSpans};
use crate::perfetto::PerfettoTrace;
use crate::perfetto::annotations::AnnotationNames;
use crate::redaction::RedactedArguments;
use crate::{folded, html, otlp, pprof};

/// Writes the selected events and spans.
///
/// # Errors
/// [`ReportError::Question`] if the trace does not have what is requested; [`ReportError::Write`] if `out` fails, and for the format that is
/// written from its end ([`write_perf`](crate::write_perf)). What was written until then is not complete.
pub fn write(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    if !options.gzip {
        return write_plain(session, selection, options, out);
    }
    let mut packed = GzEncoder::new(out, Compression::default());
    let notices = write_plain(session, selection, options, &mut packed)?;
    packed.finish()?.flush()?;
    Ok(notices)
}

fn write_plain(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    match options.format {
        ExportFormat::Perf => Err(io::Error::from(io::ErrorKind::NotSeekable).into()),
        ExportFormat::Html => html::write(session, selection, options, out),
        ExportFormat::Rows(format) => write_rows(session, selection, options, format, out),
        ExportFormat::Stacks(format) => {
            if !options.redaction.is_empty() {
                return Err(QuestionError::RedactedStacks.into());
            }
            let weighed = weighed(session, selection, options)?;
            match format {
                StackFormat::Folded => folded::write(&weighed.stacks, out)?,
                StackFormat::Pprof => pprof::write(&weighed.stacks, out)?,
            }
            out.flush()?;
            Ok(weighed.notices)
        }
    }
}

/// Stacks with their weights, and the faults of the trace.
struct WeighedTrace {
    stacks: WeighedStacks,
    notices: Notices,
}

/// Weighs the stacks: by their hits, or by the time of spans.
fn weighed(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
) -> Result<WeighedTrace, ReportError> {
    let weight = match (&*options.spans, &options.value) {
        ([], None) => StackWeight::Hits,
        ([], Some(value)) => StackWeight::Sum(value.clone()),
        (spans, None) => StackWeight::Spans(SpanQuestion {
            spans: spans.to_vec(),
            key: options.key.clone(),
            min: options.min,
            ..SpanQuestion::default()
        }),
        _ => return Err(QuestionError::SeveralWeights.into()),
    };
    let question = Question::Stacks {
        weight,
        of: options.stacks,
    };
    let Answer { facts, notices } = session.answer(selection, &question)?;
    match facts {
        Facts::Stacks(stacks) => Ok(WeighedTrace { stacks, notices }),
        _ => Err(QuestionError::NoStackWeight.into()),
    }
}

/// Writes events and spans one by one.
fn write_rows(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ExportOptions,
    format: RowFormat,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let question = RowQuestion {
        spans: options.spans.clone(),
        key: options.key.clone(),
        stacks: true,
    };
    let walk = RowWalk::new(session, selection, &question)?;
    let walk = walk.at_least(options.min, options.least_parts)?;
    let redacted = RedactedArguments::new(session, &options.redaction)?;
    let mut notices = Notices::new(session);
    match format {
        RowFormat::Perfetto => {
            let names = AnnotationNames::new(session, &redacted);
            let mut sink = PerfettoTrace::new(session, &walk, names, out);
            let rows = redacted.run(&walk, &mut sink, &mut notices)?;
            notices.empty = no_rows(rows);
            sink.finish()?;
        }
        RowFormat::OtlpJson | RowFormat::OtlpProto => {
            let encode = match format {
                RowFormat::OtlpProto => otlp::message::encode,
                _ => otlp::json::encode,
            };
            let trace = options.trace_id.as_deref();
            let events = OtlpEvents::new(session, &redacted, trace)?;
            let mut sink = OtlpSpans::new(session, &walk, events, encode, out)?;
            let rows = redacted.run(&walk, &mut sink, &mut notices)?;
            let spans = sink.finish()?;
            notices.empty = no_rows(rows).or((spans == 0).then_some(EmptyExport::NoSpans));
        }
    }
    out.flush()?;
    Ok(notices)
}

/// Why an export of events is empty, if it is.
fn no_rows(rows: u64) -> Option<EmptyExport> {
    (rows == 0).then_some(EmptyExport::NoHits)
}

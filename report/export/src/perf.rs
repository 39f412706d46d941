//! `perf`: a plain perf.data file with the selected samples and all other records of the kernel, in the order of time.
//!
//! It shows no values: it copies the records that `report/trace/src/events/order/records.rs` puts in the order of time, and
//! `format/src/trace/plain.rs` writes them as stock perf does.

use std::io::{Seek, Write};

use usdtrec_format::trace::{PlainHead, PlainWriter, TimeRange};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::{EmptyExport, Notices};
use usdtrec_trace::events::order::records::records_in_order;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::session::TraceSession;

/// Writes the selected samples, and all records about processes and losses, to an empty file.
///
/// # Errors
/// [`ReportError::Question`] if the trace does not have what is requested; [`ReportError::Write`] if `out` fails. What was written until then is
/// not complete.
pub fn write(
    session: &TraceSession,
    selection: &EventSelection,
    out: impl Write + Seek,
) -> Result<Notices, ReportError> {
    let filter = SampleFilter::new(selection, session)?;
    let mut writer = PlainWriter::create(out, PlainHead::from_trace(session.trace())?)?;
    let mut samples: Option<TimeRange> = None;
    let mut notices = Notices::new(session);
    let outcome = records_in_order(session, &filter, |record| {
        if let Some(time) = record.sample_time {
            samples = Some(TimeRange::with(samples, time));
        }
        writer.record(record.bytes)
    })?;
    notices.add(outcome);
    notices.empty = samples.is_none().then_some(EmptyExport::NoHits);
    // They are in no block.
    writer.losses(session.trace().losses().unwrap_or_default())?;
    writer.finish(samples)?;
    Ok(notices)
}

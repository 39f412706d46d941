//! The stream of a recording whose hits are counted in the kernel.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::session::{Sources, TraceSession};

/// Reads the stream of a recording whose hits are counted in the kernel, to its end: it has what is known of the processes.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream.
pub fn read(
    input: impl Read,
    path: &Path,
    sources: &Sources,
) -> Result<StreamSummary, ReportError> {
    watch(
        input,
        path,
        sources,
        &EventSelection::default(),
        &ContextQuestion::default(),
        |_, _| Ok(Unshown),
    )
}

/// A stream without samples.
struct Unshown;

impl StreamView for Unshown {
    fn show(&mut self, _: StreamSamples<'_>) -> Result<(), ReportError> {
        Ok(())
    }

    fn add_events(
        &mut self,
        _: &TraceSession,
        _: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError> {
        Ok(BTreeSet::new())
    }

    fn lose(&mut self, _: &TraceSession, _: Option<usize>, _: u64) {}
}

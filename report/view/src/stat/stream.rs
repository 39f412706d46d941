//! The stream of a recording whose hits are counted in the kernel.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::session::{Sources, TraceSession};

use super::stack_namer::StackNamer;

/// Information for the reader of a stream, apart from the counts.
pub trait CountReader {
    /// Takes that all is known of processes up to a time, ns of the trace's clock; `u64::MAX` at the end. `names` are those of stacks up to it.
    /// Returns the time of the earliest hit of which the stack must still get names.
    fn settle(&mut self, until: u64, names: &mut StackNamer<'_>) -> u64;
}

/// Reads the stream of a recording whose hits are counted in the kernel, to its end: it has what is known of the processes. `reader` names stacks;
/// `None` if there are none.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream.
pub fn read(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    reader: Option<&mut dyn CountReader>,
) -> Result<StreamSummary, ReportError> {
    watch(
        input,
        path,
        sources,
        &EventSelection::default(),
        &ContextQuestion::default(),
        |_, _| Ok(Unshown { reader }),
    )
}

/// A stream without samples.
struct Unshown<'r> {
    reader: Option<&'r mut dyn CountReader>,
}

impl StreamView for Unshown<'_> {
    fn show(&mut self, _: StreamSamples<'_>) -> Result<(), ReportError> {
        Ok(())
    }

    fn settle(&mut self, session: &TraceSession, until: u64) -> Result<u64, ReportError> {
        Ok(match &mut self.reader {
            Some(reader) => reader.settle(until, &mut StackNamer::new(session)),
            None => until,
        })
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

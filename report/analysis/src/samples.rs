//! The samples that a question is about.

use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::session::TraceSession;

/// Samples of a trace that a filter lets through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedSamples<'a> {
    pub(crate) session: &'a TraceSession,
    pub(crate) filter: &'a SampleFilter,
}

//! Which spans are compared.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::session::TraceSession;

use crate::rows::row_walk::SpanRowQuestion;
use crate::spans::pair::Pair;

/// Which spans are compared, besides probes and arguments.
#[derive(Clone, Copy, Debug)]
pub struct CompareQuestion<'q> {
    /// The spans; those that are found by the names of probes if none is named. Those that are shorter do not count.
    pub spans: &'q SpanRowQuestion,
    /// Keys of groups, as of [`SpanQuestion::by`](crate::question::SpanQuestion::by).
    pub by: &'q [String],
}

impl CompareQuestion<'_> {
    /// Keys by which begins and ends of these pairs are matched.
    pub(crate) fn key(&self, pairs: &[Pair]) -> &[String] {
        match pairs.is_empty() {
            true => &[],
            false => &self.spans.key,
        }
    }

    /// The pairs of a recording.
    pub(crate) fn pairs(
        &self,
        session: &TraceSession,
        filter: &SampleFilter,
    ) -> Result<Vec<Pair>, ReportError> {
        let of = |event: usize| filter.event(event);
        match self.spans.spans.is_empty() {
            true => Ok(Pair::find(session, of)),
            false => self.spans.pairs(session, of),
        }
    }
}

//! Which spans are compared.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::session::TraceSession;

use crate::rows::row_walk::SpanRowQuestion;
use crate::spans::pair::{Pair, filter_of_pairs};

/// Which spans are compared, besides probes and arguments.
#[derive(Clone, Copy, Debug)]
pub struct CompareQuestion<'q> {
    /// The spans; those that are found by the names of probes if none is named. Those that are shorter do not count.
    pub spans: &'q SpanRowQuestion,
    /// Keys of groups, as of [`SpanQuestion::by`](crate::question::SpanQuestion::by).
    pub by: &'q [String],
}

/// The spans of a recording that are compared.
#[derive(Debug, Default)]
pub(crate) struct ComparedSpans {
    /// The pairs of probes that begin and end them.
    pub(crate) pairs: Vec<Pair>,
    /// Which are selected, where an expression says it: it may be about what ends them.
    pub(crate) filter: Option<SampleFilter>,
}

impl CompareQuestion<'_> {
    /// Keys by which begins and ends of these pairs are matched.
    pub(crate) fn key(&self, pairs: &[Pair]) -> &[String] {
        match pairs.is_empty() {
            true => &[],
            false => &self.spans.key,
        }
    }

    /// The spans of a recording, of the events of a filter. `selection` is what the recording has of what is asked.
    pub(crate) fn compared_spans(
        &self,
        session: &TraceSession,
        filter: &SampleFilter,
        selection: &EventSelection,
    ) -> Result<ComparedSpans, ReportError> {
        let of = |event: usize| filter.event(event);
        let is_named = !self.spans.spans.is_empty();
        let pairs = match is_named {
            true => self.spans.pairs(session, of)?,
            false => Pair::find(session, of),
        };
        let is_filtered = !pairs.is_empty() && selection.filter.is_some();
        let filter = is_filtered.then(|| filter_of_pairs(&pairs, selection, session));
        let filter = match filter.transpose() {
            // It is about probes alone, and no span is selected.
            Err(ReportError::Question(_)) if !is_named => None,
            filter => filter?,
        };
        Ok(ComparedSpans { pairs, filter })
    }
}

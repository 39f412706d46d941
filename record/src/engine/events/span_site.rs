//! What was counted of spans at a site.

use crate::aggregation::SpanHitCounts;

/// What was counted of the spans that a site begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanSite {
    /// Index of its probe.
    pub(crate) probe: usize,
    /// Name of the span.
    pub(crate) name: String,
    pub(crate) counts: SpanHitCounts,
}

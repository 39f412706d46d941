//! What was counted of spans at a site.

use crate::aggregation::SpanHitCounts;

/// What was counted of the spans that a site begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanSite {
    /// Index of its probe.
    pub probe: usize,
    /// Name of the span.
    pub name: String,
    pub counts: SpanHitCounts,
}

//! What is aggregated in the kernel where hits are not copied out.

use std::time::Duration;

/// An aggregation: programs count the hits, and write no samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregation {
    /// Interval at which the counts are read; `None` for the end alone.
    pub interval: Option<Duration>,
}

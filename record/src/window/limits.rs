//! How much a window holds.

use std::time::Duration;

/// How much a window holds: what is older, or exceeds the bytes, falls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    time: Duration,
    bytes: usize,
}

impl WindowLimits {
    /// A window of this time, of which the packed records take so many bytes of memory at most.
    #[must_use]
    pub const fn new(time: Duration, bytes: usize) -> Self {
        Self { time, bytes }
    }

    /// Maximum memory, bytes.
    pub(super) const fn bytes(self) -> usize {
        self.bytes
    }

    /// The age, ns.
    pub(super) fn nanoseconds(self) -> u64 {
        self.time.as_nanos().try_into().unwrap_or(u64::MAX)
    }
}

//! The threads that compress a trace.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// Maximum number of threads if none is given: more need more than half a million hits a second each.
const MAX_DEFAULT_THREADS: usize = 8;

/// Number of threads that compress a trace, including the one that drains the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Maximum number.
    pub(crate) most: NonZeroUsize,
    /// Whether all of them are started when a trace begins, rather than when records wait.
    pub(crate) at_once: bool,
}

impl Threads {
    /// This many from the beginning.
    #[must_use]
    pub const fn exactly(number: NonZeroUsize) -> Self {
        Self {
            most: number,
            at_once: true,
        }
    }
}

impl Default for Threads {
    /// As many as records need, at most one for each CPU that this process may use, and at most 8.
    fn default() -> Self {
        let cpus = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = NonZeroUsize::new(MAX_DEFAULT_THREADS).map_or(cpus, |most| cpus.min(most));
        Self {
            most,
            at_once: false,
        }
    }
}

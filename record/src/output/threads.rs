//! The threads that compress a trace.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// Maximum number of threads: more need more than half a million hits a second each.
const MAX_THREADS: usize = 8;

/// Maximum number of threads that compress a trace, including the one that drains the rings: one for each CPU that this process may use, and at
/// most 8. They are started when records wait.
pub(crate) fn most_threads() -> NonZeroUsize {
    let cpus = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(MAX_THREADS).map_or(cpus, |most| cpus.min(most))
}

//! Perf events whose counts of hits are not exact.

/// Why hits may be missing or duplicated without being counted as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InexactCounts {
    /// Perf events are not inherited by threads.
    #[error("perf events that are not inherited miss threads that begin later")]
    NotInherited,
    /// Perf events are inherited.
    #[error("the kernel's inherited perf events miss hits of children, uncounted")]
    Inherited,
    /// Perf events of the uprobe PMU on several CPUs.
    #[error(
        "perf events of the uprobe PMU, one for each CPU, miss a hit or count it twice when its thread changes the CPU"
    )]
    PmuOnSeveralCpus,
    /// The kernel has no `PERF_FORMAT_LOST`.
    #[error("this kernel does not count what perf events lose (Linux 6.0)")]
    LossesNotCounted,
}

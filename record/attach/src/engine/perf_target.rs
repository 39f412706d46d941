//! The threads and CPUs whose perf events are opened.

/// The threads and CPUs that are recorded, as `perf_event_open(2)` takes them.
#[derive(Clone, Debug, Default)]
pub struct PerfTarget {
    /// Threads; only -1 for all.
    pub tids: Vec<i32>,
    /// CPUs, sorted.
    pub cpus: Vec<u32>,
    /// Whether later threads and children are recorded, too.
    pub inherit: bool,
    /// Whether the kernel enables the events at the next `execve(2)` of the thread.
    pub enable_on_exec: bool,
}

//! Who is watched.

/// Who is watched, as the kernel takes it.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Threads; -1 alone for all.
    pub(crate) tids: Vec<i32>,
    /// CPUs, sorted.
    pub(crate) cpus: Vec<u32>,
    /// Follow later threads and children.
    pub(crate) inherit: bool,
    /// Begin at the next `execve(2)` of the thread.
    pub(crate) enable_on_exec: bool,
}

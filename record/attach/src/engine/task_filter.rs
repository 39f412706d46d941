//! The processes and threads whose hits are recorded.

/// Whose hits are recorded, as programs check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFilter {
    /// Hits of all processes.
    All,
    /// Hits of these processes and of the children that they start later.
    Processes(Vec<u32>),
    /// Hits of these processes without children.
    ProcessesAlone(Vec<u32>),
    /// Hits of these threads.
    Threads(Vec<u32>),
}

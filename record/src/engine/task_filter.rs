//! The processes and threads whose hits are recorded.

/// Whose hits are recorded, as programs check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskFilter {
    /// Those of all processes.
    All,
    /// Those of these processes and of the children that they start later.
    Processes(Vec<u32>),
    /// Those of these processes without children.
    ProcessesAlone(Vec<u32>),
    /// Those of these threads.
    Threads(Vec<u32>),
}

//! The processes and threads whose hits are recorded.

/// The processes or threads whose hits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) enum RecordedProcesses {
    /// Hits of all processes.
    #[default]
    All,
    /// Hits of the processes in the map.
    Processes,
    /// Hits of the processes in the map: of those that have links of their own, by these links; of the others, by links for all processes.
    Apart,
    /// Hits of the threads in the map.
    Threads,
}

/// Value in the map for a process that has links of its own: a named one, or one that a recorded process started, from its first
/// instruction on.
pub(in crate::engine::bpf) const LINKED: u32 = 1;
/// Value in the map for another process that a recorded one started. A larger value is the token of a process that is held and has got links.
pub(in crate::engine::bpf) const FOLLOWED: u32 = 2;
/// The smallest token.
pub(in crate::engine::bpf) const FIRST_TOKEN: u32 = 3;

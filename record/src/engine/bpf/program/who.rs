//! Whose hits are recorded.

/// Whose hits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) enum Who {
    /// Hits of all processes.
    #[default]
    All,
    /// Hits of the processes in the map.
    Processes,
    /// Hits of the processes in the map that have links of their own.
    Linked,
    /// Hits of the other processes in the map.
    Unlinked,
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

//! Whose hits are recorded.

/// Whose hits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) enum Who {
    /// Those of all processes.
    #[default]
    All,
    /// Those of the processes in the map.
    Processes,
    /// Those of the named processes in the map, which have links of their own.
    Named,
    /// Those of the processes in the map that named processes started.
    Followed,
    /// Those of the threads in the map.
    Threads,
}

/// Value in the map for a named process.
pub(in crate::engine::bpf) const NAMED: u32 = 1;
/// Value in the map for a process that a recorded one started.
pub(in crate::engine::bpf) const FOLLOWED: u32 = 2;

impl Who {
    /// The value that the map must have for the process; `None` if any value will do.
    pub(super) const fn kind(self) -> Option<u32> {
        match self {
            Self::All | Self::Processes | Self::Threads => None,
            Self::Named => Some(NAMED),
            Self::Followed => Some(FOLLOWED),
        }
    }
}

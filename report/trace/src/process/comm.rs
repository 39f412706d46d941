//! What a thread is called for a time, and which process of its pid it belongs to.

use crate::process::names::NameId;

/// What a thread is called, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommSpan {
    /// The name; `None` if the trace does not say.
    pub name: Option<NameId>,
    /// The process whose main thread it is; of no meaning for other threads.
    pub process: ProcessNumber,
    /// First time, ns.
    pub from: u64,
    /// Time after the last, ns; `u64::MAX` for the end.
    pub until: u64,
}

/// Which process of a pid, as pids are used again: the place of its FORK record among those of all processes, in the order of
/// time, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessNumber(pub(crate) u32);

impl ProcessNumber {
    /// The first process of its pid, whose FORK record is not in the trace.
    pub const UNKNOWN: Self = Self(0);
}

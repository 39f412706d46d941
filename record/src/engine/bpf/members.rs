//! What programs on tracepoints need of the kernel.

use super::preemption::Preemption;

/// Offsets of members of the kernel's structures, bytes, and how preemption is disabled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    /// `task_struct.tgid`.
    pub(super) tgid: u32,
    /// `task_struct.signal`.
    pub(super) signal: u32,
    /// `signal_struct.live`: number of threads that have not ended.
    pub(super) live: u32,
    /// `signal_struct.flags`.
    pub(super) flags: u32,
    /// `task_struct.prio`.
    pub(super) priority: u32,
    /// How preemption is disabled: while a program is preempted, the kernel does not run it for other threads of the CPU.
    pub(super) preemption: Option<Preemption>,
}

//! What programs on tracepoints need of the kernel.

use super::super::preemption::Preemption;

/// Offsets of members of the kernel's structures, bytes, and how preemption is disabled.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct Members {
    /// `task_struct.tgid`.
    pub(in crate::engine::bpf) tgid: u32,
    /// `task_struct.signal`.
    pub(in crate::engine::bpf) signal: u32,
    /// `signal_struct.live`: number of threads that have not ended.
    pub(in crate::engine::bpf) live: u32,
    /// `signal_struct.flags`.
    pub(in crate::engine::bpf) flags: u32,
    /// `task_struct.prio`.
    pub(in crate::engine::bpf) priority: u32,
    /// How preemption is disabled: while a program is preempted, the kernel does not run it for other threads of the CPU.
    pub(in crate::engine::bpf) preemption: Option<Preemption>,
}

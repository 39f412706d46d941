//! Features of the running kernel for holding processes.

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::members::Members;

use super::work::schedule_function;
use crate::engine::bpf::tracepoint::NEW_TASK;

/// Offsets and functions of the running kernel that the programs need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    pub(super) members: Members,
    /// `signal_struct.group_exec_task`: the thread that executes a program and ends the others.
    pub(super) exec_task: u32,
    /// `bpf_task_work_schedule_resume`.
    pub(super) schedule: u32,
    /// The types of the tracepoints.
    pub(super) fork: u32,
    pub(super) new_task: u32,
    pub(super) exec: u32,
    pub(super) exit: u32,
}

impl Kernel {
    pub(super) fn find(members: Members, btf: &Btf) -> Option<Self> {
        Some(Self {
            members,
            exec_task: btf.member("signal_struct", &["group_exec_task"])?,
            schedule: schedule_function(btf)?,
            fork: btf.tracepoint("sched_process_fork")?,
            new_task: btf.tracepoint(NEW_TASK)?,
            exec: btf.tracepoint("sched_process_exec")?,
            exit: btf.tracepoint("sched_process_exit")?,
        })
    }
}

//! Features of the running kernel for holding processes.

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::members::Members;
use usdtrec_kernel::bpf::features::tracepoint::Tracepoint;

use super::work::schedule_function;

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
            fork: Tracepoint::Fork.id(btf)?,
            new_task: Tracepoint::NewTask.id(btf)?,
            exec: Tracepoint::Exec.id(btf)?,
            exit: Tracepoint::Exit.id(btf)?,
        })
    }
}

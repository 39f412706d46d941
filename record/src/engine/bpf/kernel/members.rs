//! What programs on tracepoints need of the kernel.

use super::super::insn::{Assembler, FunctionKind, Helper, Label, Reg, Width};
use super::super::preemption::Preemption;
use super::pid_namespace::PidNamespace;
use usdtrec_format::Btf;

/// Where the kernel has the inode that a process executes, and that of an open file; offsets, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct ExecutableMembers {
    /// `task_struct.mm`, `mm_struct.exe_file`, `file.f_inode`.
    pub(in crate::engine::bpf) mm: u32,
    pub(in crate::engine::bpf) exe_file: u32,
    pub(in crate::engine::bpf) inode: u32,
    /// `task_struct.files`, `files_struct.fdt`, `fdtable.fd`.
    pub(in crate::engine::bpf) files: u32,
    pub(in crate::engine::bpf) table: u32,
    pub(in crate::engine::bpf) descriptors: u32,
}

impl ExecutableMembers {
    /// `None` if this kernel does not have one of the members.
    pub(in crate::engine::bpf) fn find(btf: &Btf) -> Option<Self> {
        let one = |structure, member| btf.member(structure, &[member]);
        Some(Self {
            mm: one("task_struct", "mm")?,
            exe_file: one("mm_struct", "exe_file")?,
            inode: one("file", "f_inode")?,
            files: one("task_struct", "files")?,
            table: one("files_struct", "fdt")?,
            descriptors: one("fdtable", "fd")?,
        })
    }
}

/// Where the kernel has the ids and the user of a task; offsets, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct IdMembers {
    /// `task_struct.tgid`, `pid`, `cred`.
    pub(in crate::engine::bpf) process: i16,
    pub(in crate::engine::bpf) thread: i16,
    pub(in crate::engine::bpf) credentials: i16,
    /// `cred.uid`: as the first user namespace has it.
    pub(in crate::engine::bpf) user: i16,
}

impl IdMembers {
    /// `None` if this kernel does not have one of the members where an instruction reaches it.
    pub(in crate::engine::bpf) fn find(btf: &Btf) -> Option<Self> {
        let one = |structure, member| i16::try_from(btf.member(structure, &[member])?).ok();
        Some(Self {
            process: one("task_struct", "tgid")?,
            thread: one("task_struct", "pid")?,
            credentials: one("task_struct", "cred")?,
            user: one("cred", "uid")?,
        })
    }

    /// Writes the function that gives the user of the current task.
    pub(in crate::engine::bpf) fn user_function(self, asm: &mut Assembler, function: Label) {
        asm.function(function, FunctionKind::Global { arguments: 0 });
        asm.call(Helper::CurrentTaskBtf);
        asm.load(Width::Double, Reg::R0, Reg::R0, self.credentials);
        asm.load(Width::Word, Reg::R0, Reg::R0, self.user);
        asm.exit();
    }
}

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
    /// The pid namespace of the recorder, if it is not the first one. Then no process is held.
    pub(in crate::engine::bpf) namespace: Option<PidNamespace>,
}

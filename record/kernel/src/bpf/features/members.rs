//! What programs on tracepoints need of the kernel.

use usdtrec_format::Btf;

use super::super::insn::{Assembler, FunctionKind, Helper, If, Label, Op, Reg, Width};
use super::super::preemption::Preemption;
use super::pid_namespace::PidNamespace;

/// Where the kernel has the inode that a process executes, and that of an open file; offsets, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutableMembers {
    /// `task_struct.mm`.
    pub mm: u32,
    /// `mm_struct.exe_file`.
    pub exe_file: u32,
    /// `file.f_inode`.
    pub inode: u32,
    /// `task_struct.files`.
    pub files: u32,
    /// `files_struct.fdt`.
    pub table: u32,
    /// `fdtable.fd`.
    pub descriptors: u32,
}

impl ExecutableMembers {
    /// `None` if this kernel does not have one of the members.
    pub fn find(btf: &Btf) -> Option<Self> {
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
pub struct IdMembers {
    /// `task_struct.tgid`.
    pub process: i16,
    /// `task_struct.pid`.
    pub thread: i16,
    /// `task_struct.cred`.
    pub credentials: i16,
    /// `cred.uid`: as the first user namespace has it.
    pub user: i16,
}

impl IdMembers {
    /// `None` if this kernel does not have one of the members where an instruction reaches it.
    pub fn find(btf: &Btf) -> Option<Self> {
        let one = |structure, member| i16::try_from(btf.member(structure, &[member])?).ok();
        Some(Self {
            process: one("task_struct", "tgid")?,
            thread: one("task_struct", "pid")?,
            credentials: one("task_struct", "cred")?,
            user: one("cred", "uid")?,
        })
    }

    /// Writes the function that gives the user of the current task.
    pub fn user_function(self, asm: &mut Assembler, function: Label) {
        asm.function(function, FunctionKind::Global { arguments: 0 });
        asm.call(Helper::CurrentTaskBtf);
        asm.load(Width::Double, Reg::R0, Reg::R0, self.credentials);
        asm.load(Width::Word, Reg::R0, Reg::R0, self.user);
        asm.exit();
    }
}

/// Offsets of members of the kernel's structures, bytes, and how preemption is disabled.
#[derive(Clone, Copy, Debug)]
pub struct Members {
    /// `task_struct.tgid`.
    pub tgid: u32,
    /// `task_struct.signal`.
    pub signal: u32,
    /// `signal_struct.live`: number of threads that have not ended.
    pub live: u32,
    /// `signal_struct.flags`.
    pub flags: u32,
    /// `task_struct.prio`.
    pub priority: u32,
    /// How preemption is disabled: while a program is preempted, the kernel does not run it for other threads of the CPU.
    pub preemption: Option<Preemption>,
    /// The pid namespace of the recorder, if it is not the first one. Then no process is held.
    pub namespace: Option<PidNamespace>,
}

impl Members {
    /// The program takes the ids of the current task from a slot of 8 bytes from here on, if the recorder is in a pid namespace, and jumps to `outside` if
    /// the task is in another one. `R0` to `R5` are lost.
    pub fn use_ids(self, asm: &mut Assembler, slot: i16, outside: Label) {
        if let Some(namespace) = self.namespace {
            namespace.use_ids(asm, slot, outside);
        }
    }

    /// `R3` = the process id of the child of the current task; `R6` is the context of `sched_wakeup_new`, `slot` one of 8 bytes. `R7` and `R8`
    /// are lost. Jumps to `out` if the child is a new thread, or in another pid namespace than the recorder.
    pub fn child_id(self, asm: &mut Assembler, slot: i16, out: Label) {
        asm.load(Width::Double, Reg::R7, Reg::R6, 0);
        match self.namespace {
            Some(namespace) => namespace.child_id(asm, slot, out),
            None => {
                asm.call(Helper::PidTgid);
                asm.op_value(Op::ShiftRight, Reg::R0, 32);
                asm.copy(Reg::R3, Reg::R7);
                load_member(asm, Width::Word, self.tgid);
                asm.jump_if_reg(If::Equal, Reg::R3, Reg::R0, out);
            }
        }
    }
}

/// `R3` = a member of the structure at `R3`.
pub fn load_member(asm: &mut Assembler, width: Width, offset: u32) {
    // The instruction's offset has 16 bits.
    asm.op_value(Op::Add, Reg::R3, offset.cast_signed());
    asm.load(width, Reg::R3, Reg::R3, 0);
}

//! What programs on tracepoints need of the kernel.
//!
//! The pid namespace of the recorder, if it is not the first one: programs find the ids of processes in it.
//!
//! Of the task that runs a program a helper says the ids, if it is in the very namespace. Tasks outside are not recorded, nor are those of namespaces
//! inside, whose ids are others in each. Of another task, a child, the structures say it.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{major, minor, stat};
use usdtrec_format::Btf;

use super::super::insn::{Assembler, Code, FunctionKind, Helper, If, Label, Op, Reg, Width};
use super::super::preemption::Preemption;
use super::super::sys::{self, ProgramKind};

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
        // return bpf_get_current_task_btf()->cred->uid;
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
        // child = ctx[0];
        asm.load(Width::Double, Reg::R7, Reg::R6, 0);
        match self.namespace {
            Some(namespace) => namespace.child_id(asm, slot, out),
            None => {
                // r3 = child->tgid; if (r3 == bpf_get_current_pid_tgid() >> 32) goto out;
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
    // r3 = *(uN *)(r3 + offset);
    asm.op_value(Op::Add, Reg::R3, offset.cast_signed());
    asm.load(width, Reg::R3, Reg::R3, 0);
}

/// `PROC_PID_INIT_INO`, include/linux/proc_ns.h.
const FIRST: u64 = 0xeffffffc;

/// Size of `struct upid`, bytes (include/linux/pid.h).
const NUMBER_BYTES: u32 = 16;

/// A pid namespace, and where the kernel has the ids of a task in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidNamespace {
    /// As the kernel encodes it.
    device: u64,
    inode: u64,
    /// Number of namespaces around it.
    level: u32,
    members: NamespaceMembers,
}

/// Offsets of members of the kernel's structures, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamespaceMembers {
    /// `task_struct.thread_pid`, `task_struct.tgid`.
    thread_pid: u32,
    tgid: u32,
    /// `pid.level`, `pid.numbers`.
    level: u32,
    numbers: u32,
}

impl PidNamespace {
    /// The namespace of this process; `None` if it is the initial one, whose ids programs see.
    ///
    /// # Errors
    /// The kernel does not describe its structures, or refuses the program that reads the level.
    pub fn own(btf: Option<&Btf>) -> io::Result<Option<Self>> {
        let found = stat("/proc/self/ns/pid")?;
        if found.st_ino == FIRST {
            return Ok(None);
        }
        let missing = || io::Error::other("the kernel does not describe its structures (BTF)");
        let member = |structure, name| btf?.member(structure, &[name]);
        let members = (|| {
            Some(NamespaceMembers {
                thread_pid: member("task_struct", "thread_pid")?,
                tgid: member("task_struct", "tgid")?,
                level: member("pid", "level")?,
                numbers: member("pid", "numbers")?,
            })
        })();
        let members = members.ok_or_else(missing)?;
        let code = level(members).ok_or_else(missing)?;
        let program = sys::load(ProgramKind::Run, &code)?;
        let level = u32::try_from(sys::run(program.as_fd())?);
        Ok(Some(Self {
            // MKDEV, include/linux/kdev_t.h.
            device: u64::from(major(found.st_dev)) << 20 | u64::from(minor(found.st_dev)),
            inode: found.st_ino,
            level: level.map_err(|_| missing())?,
            members,
        }))
    }

    /// Stores the ids of the current task, as `bpf_get_current_pid_tgid` gives them, in a slot of 8 bytes, from which the program takes them from here
    /// on; jumps to `outside` if the task is in another namespace. `R0` to `R5` are lost.
    pub fn use_ids(self, asm: &mut Assembler, slot: i16, outside: Label) {
        // if (bpf_get_ns_current_pid_tgid(device, inode, &slot, 8)) goto outside;
        asm.set(Reg::R1, self.device.cast_signed());
        asm.set(Reg::R2, self.inode.cast_signed());
        asm.address(Reg::R3, Reg::R10, slot.into());
        asm.set(Reg::R4, 8);
        asm.call(Helper::NamespaceIds);
        asm.jump_if(If::NotEqual, Reg::R0, 0, outside);
        asm.use_ids(slot);
    }

    /// `R3` = the process id of a child of the current task, whose `task_struct` is at `R7`; `slot` is one of 8 bytes. Jumps to `out` if it is a new
    /// thread, or in another namespace.
    pub fn child_id(self, asm: &mut Assembler, slot: i16, out: Label) {
        let members = self.members;
        // r8 = bpf_get_current_pid_tgid() >> 32; if (child->tgid == r8) goto out;
        asm.call(Helper::PidTgid);
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.copy(Reg::R8, Reg::R0);
        asm.copy(Reg::R3, Reg::R7);
        read(asm, members.tgid, Width::Word, slot, out);
        asm.jump_if_reg(If::Equal, Reg::R3, Reg::R8, out);
        // pid = child->thread_pid; if (pid->level != level) goto out;
        asm.copy(Reg::R3, Reg::R7);
        read(asm, members.thread_pid, Width::Double, slot, out);
        asm.copy(Reg::R8, Reg::R3);
        read(asm, members.level, Width::Word, slot, out);
        asm.jump_if(If::NotEqual, Reg::R3, self.level.cast_signed(), out);
        // r3 = pid->numbers[level].nr;
        asm.copy(Reg::R3, Reg::R8);
        let number = members.numbers + self.level * NUMBER_BYTES;
        read(asm, number, Width::Word, slot, out);
    }
}

/// `R3` = kernel memory at `R3 + offset`, through a slot; jumps to `out` if it cannot be read, as in lockdown. `R0` is the helper's result.
fn read(asm: &mut Assembler, offset: u32, width: Width, slot: i16, out: Label) {
    let bytes = if width == Width::Word { 4 } else { 8 };
    // r0 = bpf_probe_read_kernel(&slot, bytes, r3 + offset); if (r0) goto out;
    asm.address(Reg::R3, Reg::R3, offset.cast_signed());
    asm.address(Reg::R1, Reg::R10, slot.into());
    asm.set(Reg::R2, bytes);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    // r3 = *(uN *)&slot;
    asm.load(width, Reg::R3, Reg::R10, slot);
}

/// The number of namespaces around that of the process that runs this, or a negative error number.
fn level(members: NamespaceMembers) -> Option<Code> {
    const SLOT: i16 = -8;
    let mut asm = Assembler::default();
    let out = asm.label();
    // return bpf_get_current_task()->thread_pid->level; out: return the error of bpf_probe_read_kernel;
    asm.call(Helper::CurrentTask);
    asm.copy(Reg::R3, Reg::R0);
    read(&mut asm, members.thread_pid, Width::Double, SLOT, out);
    read(&mut asm, members.level, Width::Word, SLOT, out);
    asm.copy(Reg::R0, Reg::R3);
    asm.place(out);
    asm.exit();
    asm.finish()
}

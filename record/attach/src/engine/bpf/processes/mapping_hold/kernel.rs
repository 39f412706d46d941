//! Features of the running kernel for holding threads at mappings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_format::{Arch, Btf};
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::preemption::Preemption;

use super::super::follow::missing;
use super::super::hold::work;
use crate::engine::bpf::control::Control;

/// Offsets of members of the running kernel's structures, bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf::processes) struct Kernel {
    /// `sched_process_exec(task, old_pid, binprm)`.
    pub executed: u32,
    pub preemption: Option<Preemption>,
    /// `task_struct.files`, `files_struct.fdt`, `fdtable.fd`.
    pub descriptors: [u32; 3],
    /// `linux_binprm.file`.
    pub executable: u32,
    /// `file.f_inode`.
    pub inode: u32,
    /// `inode.i_ino`, `inode.i_generation`, `inode.i_sb`.
    pub number: u32,
    pub(super) generation: u32,
    pub(super) file_system: u32,
    /// `super_block.s_dev`.
    pub device: u32,
}

/// What holding a thread by work needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkKernel {
    pub(super) common: Kernel,
    pub(super) unlocked: Unlocked,
    /// `bpf_task_work_schedule_resume`.
    pub(super) schedule: u32,
    /// `task_struct.prio`, `task_struct.start_boottime`.
    pub(super) priority: u32,
    pub(super) started: u32,
}

/// `mmap_lock_released(mm, write)`, with which `mmap` ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf::processes) struct Unlocked {
    pub tracepoint: u32,
    /// How system calls pass their arguments, for the architectures of this machine.
    pub calls: [MmapCall; 2],
}

/// `mmap` or `mmap2`: its number, and offsets in `struct pt_regs` of the number of a system call and of its arguments.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf::processes) struct MmapCall {
    pub number: i32,
    pub number_at: i16,
    pub length_at: i16,
    pub protection_at: i16,
    pub flags_at: i16,
    pub descriptor_at: i16,
    pub offset_at: i16,
    /// Whether the offset in the file is in units of 4096 bytes.
    pub is_in_pages: bool,
}

impl Kernel {
    /// # Errors
    /// The kernel does not describe its structures, or not as expected.
    pub(in crate::engine::bpf) fn find(
        btf: &Btf,
        preemption: Option<Preemption>,
    ) -> io::Result<Self> {
        let one = |structure, member| btf.member(structure, &[member]).ok_or_else(missing);
        Ok(Self {
            executed: Tracepoint::Exec.id(btf).ok_or_else(missing)?,
            preemption,
            descriptors: [
                one("task_struct", "files")?,
                one("files_struct", "fdt")?,
                one("fdtable", "fd")?,
            ],
            executable: one("linux_binprm", "file")?,
            inode: one("file", "f_inode")?,
            number: one("inode", "i_ino")?,
            generation: one("inode", "i_generation")?,
            file_system: one("inode", "i_sb")?,
            device: one("super_block", "s_dev")?,
        })
    }
}

impl WorkKernel {
    /// # Errors
    /// The kernel has no such work.
    pub(super) fn find(btf: &Btf, common: Kernel) -> io::Result<Self> {
        let find = || {
            Some(Self {
                common,
                unlocked: Unlocked::find(btf)?,
                schedule: work::schedule_function(btf)?,
                priority: btf.member("task_struct", &["prio"])?,
                started: btf.member("task_struct", &["start_boottime"])?,
            })
        };
        find().ok_or_else(work::no_work)
    }
}

impl Unlocked {
    pub(in crate::engine::bpf) fn find(btf: &Btf) -> Option<Self> {
        Some(Self {
            tracepoint: Tracepoint::MmapLockReleased.id(btf)?,
            calls: mmap_calls()?,
        })
    }
}

/// `__NR_mmap2` of 32-bit programs.
const MMAP2: i32 = 192;

/// `mmap` of 64-bit and `mmap2` of 32-bit programs (arch/x86/include/asm/ptrace.h, arch/arm64/include/asm/ptrace.h). A number that is another
/// call's of the other kind releases no mappings for writing.
fn mmap_calls() -> Option<[MmapCall; 2]> {
    let call = |number,
                [
        number_at,
        length_at,
        protection_at,
        flags_at,
        descriptor_at,
        offset_at,
    ]: [i16; 6]| {
        MmapCall {
            number,
            number_at,
            length_at,
            protection_at,
            flags_at,
            descriptor_at,
            offset_at,
            is_in_pages: number == MMAP2,
        }
    };
    match Arch::host()? {
        // orig_ax; si, dx, r10, r8 and r9; cx, dx, si, di and bp.
        Arch::X86_64 => Some([
            call(9, [120, 104, 96, 56, 72, 64]),
            call(MMAP2, [120, 88, 96, 104, 112, 32]),
        ]),
        // syscallno; x1 to x5.
        Arch::Aarch64 => {
            let registers = [280, 8, 16, 24, 32, 40];
            Some([call(222, registers), call(MMAP2, registers)])
        }
        _ => None,
    }
}

/// The maps that programs on new mappings use.
#[derive(Clone, Copy)]
pub(super) struct MappingMaps<'a> {
    pub(super) control: &'a Control,
    /// The recorded processes.
    pub(super) tracked: BorrowedFd<'a>,
    /// The ring of the records.
    pub(super) mappings: BorrowedFd<'a>,
    /// The known files.
    pub(super) known: BorrowedFd<'a>,
}

impl<'a> MappingMaps<'a> {
    pub(super) fn descriptor(self, map: Map) -> BorrowedFd<'a> {
        match map {
            Map::Calls => self.mappings,
            Map::KnownFiles => self.known,
            Map::Control => self.control.as_fd(),
            _ => self.tracked,
        }
    }
}

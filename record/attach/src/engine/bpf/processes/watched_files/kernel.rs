//! Features of the running kernel for the programs on new mappings of files.
//!
//! The words that the programs on new mappings share with the recorder, and its records of readers.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | while the recorder maps a file so that its inode becomes known: the id of its thread, and in the upper half the number of the file |
//! | 8 | 8 | not 0 when it is known |
//! | 16 | 32 each | by number of the file: its state, when it was last mapped with the right to execute (ns), its first and last 4096 bytes with sites |

use std::io;

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::RunningKernel;

use super::super::follow::missing;
use super::super::hold::work;
use super::super::mapping_hold::kernel::{Kernel, Unlocked};

/// What the programs need.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchKernel {
    pub(super) common: Kernel,
    pub(super) unlocked: Unlocked,
    /// `task_struct.mm`.
    pub(super) memory: i16,
    /// A structure with a pointer to a file.
    pub(super) file: FilePointer,
    /// How threads are held; `None` if they cannot be (before Linux 6.18).
    pub(super) hold: Option<HoldKernel>,
}

/// The table of descriptors has pointers whose type the verifier does not know. One of them is read as `vm_area_struct.vm_file` is.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilePointer {
    /// `bpf_rdonly_cast(pointer, type)` (Linux 6.2).
    pub(super) cast: u32,
    pub(super) structure: u32,
    /// Offset of the pointer.
    pub(super) offset: u32,
}

/// What holding a thread needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldKernel {
    /// `bpf_task_work_schedule_resume`.
    pub(super) schedule: u32,
    /// `task_struct.prio`, `task_struct.start_boottime`.
    pub(super) priority: i32,
    pub(super) started: i32,
}

impl WatchKernel {
    /// # Errors
    /// The kernel does not describe its structures, or not as expected.
    pub(super) fn find(running: RunningKernel<'_>) -> io::Result<Self> {
        let btf = running.btf.ok_or_else(missing)?;
        let memory = btf.member("task_struct", &["mm"]);
        let memory = memory.and_then(|memory| i16::try_from(memory).ok());
        Ok(Self {
            common: Kernel::find(btf, running.preemption)?,
            unlocked: Unlocked::find(btf).ok_or_else(missing)?,
            memory: memory.ok_or_else(missing)?,
            file: FilePointer::find(btf).ok_or_else(missing)?,
            hold: HoldKernel::find(btf),
        })
    }
}

impl FilePointer {
    fn find(btf: &Btf) -> Option<Self> {
        Some(Self {
            cast: btf.function("bpf_rdonly_cast")?.kind,
            structure: btf.structure_type("vm_area_struct")?,
            offset: btf.member("vm_area_struct", &["vm_file"])?,
        })
    }
}

impl HoldKernel {
    fn find(btf: &Btf) -> Option<Self> {
        Some(Self {
            schedule: work::schedule_function(btf)?,
            priority: btf.member("task_struct", &["prio"])?.cast_signed(),
            started: btf
                .member("task_struct", &["start_boottime"])?
                .cast_signed(),
        })
    }
}

/// Maximum number of files that are watched.
pub(super) const MAX_FILES: usize = 4096;
pub(super) const LEARNING: i16 = 0;
pub(super) const LEARNED: i16 = 8;
/// Size of what is before the first file.
pub(super) const HEAD_BYTES: usize = 16;
/// Size of the words of a file.
pub(super) const FILE_BYTES: usize = 32;
pub(super) const STATE: i16 = 0;
pub(super) const EXECUTED: i16 = 8;
pub(super) const FIRST_UNIT: i16 = 16;
pub(super) const LAST_UNIT: i16 = 24;
/// States: its probes are attached; nobody executes it, and they are not.
pub(super) const ATTACHED: i32 = 1;
pub(super) const IDLE: i32 = 2;
/// Size of a reader: time, ids, number of the file, name of the thread.
pub(super) const READER_BYTES: usize = 40;
/// Size of its key: addresses of the process's memory, which another process may get later, and of the inode, and the id of the process.
pub(super) const SPACE_BYTES: usize = 24;

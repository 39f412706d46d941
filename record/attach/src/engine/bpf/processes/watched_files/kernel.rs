//! Features of the running kernel for the programs on new mappings of files.

use std::io;

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::RunningKernel;

use crate::engine::bpf::processes::follow::missing;
use crate::engine::bpf::processes::hold::work;
use crate::engine::bpf::processes::mapping_hold::kernel::{Kernel, Unlocked};

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

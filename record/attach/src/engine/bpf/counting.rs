//! Semaphores of single processes that the kernel counts: a uprobe of one process at a place that nobody executes, with the semaphore. The
//! kernel decrements it when the descriptor is closed, also if the recorder is killed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_kernel::bpf::insn::Assembler;
use usdtrec_kernel::bpf::sys::{self, HitsOf, ProgramKind, UprobeEvent, Uprobes};
use usdtrec_kernel::host::cached_pages::{CachedPages, of_site};
use usdtrec_kernel::host::kernel_version::tells_processes;
use usdtrec_kernel::separate_process::planting;

use super::super::events::event::UprobePmu;
use super::super::release::{Descriptors, Release};
use crate::select::probe::SiteOffsets;

/// A semaphore, and the place of the uprobe that counts it. File offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// File offset of the site.
    pub place: u64,
    /// File offset of its semaphore.
    pub semaphore: u64,
}

/// How semaphores of single processes are counted.
#[derive(Debug)]
pub struct Counting {
    /// The uprobe PMU.
    pmu: UprobePmu,
    /// A program that does nothing, for one uprobe_multi link for each process; `None` where the kernel cannot: then there is an event for
    /// each semaphore.
    program: Option<OwnedFd>,
}

impl Counting {
    /// Finds out what the kernel can do.
    pub fn new(pmu: UprobePmu) -> Self {
        Self {
            pmu,
            program: tells_processes().then(load).flatten(),
        }
    }

    /// Maximum number of descriptors that may be open at a time: closing an event takes the kernel about a tenth of a second.
    pub const fn most(&self) -> usize {
        match self.program {
            Some(_) => 512,
            None => 16,
        }
    }

    /// Starts closing descriptors.
    pub fn close(&self, descriptors: Vec<OwnedFd>) -> Release {
        let (links, events) = match self.program {
            Some(_) => (descriptors, Vec::new()),
            None => (Vec::new(), descriptors),
        };
        Release::start(Descriptors { links, events })
    }

    /// Increments semaphores of a file in a process, until the descriptors are closed.
    ///
    /// # Errors
    /// The error of bpf(2) or perf_event_open(2): `ESRCH` if the process has ended.
    pub fn count(
        &self,
        pid: u32,
        file: &ObjectFile,
        counted: &[Counted],
    ) -> io::Result<Vec<OwnedFd>> {
        let path = &file.kernel_path();
        let kept = CachedPages::default();
        let pages = counted.iter();
        let pages = pages.flat_map(|counted| of_site(counted.place, counted.semaphore));
        kept.check(file.into(), pages)?;
        if let Some(program) = &self.program {
            let uprobes = Uprobes {
                offsets: counted.iter().map(|counted| counted.place).collect(),
                ref_ctrs: counted.iter().map(|counted| counted.semaphore).collect(),
                cookies: vec![0; counted.len()],
            };
            let link = planting(|| sys::link_uprobes(program.as_fd(), path, &uprobes, pid))?;
            return Ok(vec![link]);
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let pmu = self.pmu.known().ok_or(io::ErrorKind::Unsupported)?;
        let pid = i32::try_from(pid).map_err(|_| invalid())?;
        let open = |counted: &Counted| {
            let offsets = SiteOffsets {
                offset: counted.place,
                ref_ctr: counted.semaphore,
            };
            let event = UprobeEvent {
                pmu,
                path,
                offset: counted.place,
                config: offsets.pmu_config().map_err(|_| invalid())?,
                of: HitsOf::Process(pid),
            };
            planting(|| sys::open_uprobe(&event)).map(OwnedFd::from)
        };
        counted.iter().map(open).collect()
    }
}

/// A program that returns at once.
fn load() -> Option<OwnedFd> {
    let mut asm = Assembler::default();
    // return 0;
    asm.exit_with(0);
    sys::load(ProgramKind::UprobeMulti, &asm.finish()?).ok()
}

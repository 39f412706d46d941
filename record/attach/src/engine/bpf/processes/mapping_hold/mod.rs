//! Holding a thread that maps a file with code that is not known yet, until the probes of the file are attached (`--no-gap`). The
//! [invariants](super) are one level up.
//!
//! Programs on `execve` and `mmap`, run when the kernel has written the record of the mapping, look up the file of the descriptor or of the
//! executable in a map of known files. If it is not there, they hold the thread until the recorder has answered, before it returns to user mode:
//! before the loader continues, and long before constructors. So nothing of the file has run, unless another thread of the process guesses the
//! address. It is held in the kernel ([`work`], Linux 6.18), which nobody notices. Where that is not possible, no thread is held.
//!
//! Each such mapping has a token, the number of those so far, and the recorder answers in their order. Then the file is known, and no thread is
//! held for it any more.
//!
//! A breakpoint in the loader (`r_debug.r_brk`) is not needed. It would not be hit by mappings without the loader, and would have to be found
//! and attached in each loader. Memory that `mprotect` makes executable later is not seen: compilers at run time do that all the time, loaders
//! do not. Its gap is reported as without `--no-gap`.
//!
//! Holding a thread by work ([`work`]), before it returns to user mode. It is not stopped and gets no signal, so that parents and tracers do not
//! notice.
//!
//! Each mapping has a token, the number of those so far. The recorder stores the token up to which the probes of all files are attached, and
//! the work waits for that. Real-time threads are not held.

pub(super) mod kernel;
mod program;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::rings::Ring;
use usdtrec_kernel::bpf::sys::{self, MapKind};

use self::kernel::{Kernel, MappingMaps, WorkKernel};
use self::program::CALL_BYTES;
use super::super::control::Control;
use super::super::kernel_objects::TracepointProgram;
use super::follow::missing;
use super::hold::work;
use crate::engine::numbers::{bytes_at, u64_at};

/// Size of the ring of mappings, bytes: more than 1,000.
const RING: usize = 64 << 10;
/// Maximum number of known files; of more, those that were not mapped for the longest time are forgotten.
const MAX_KNOWN_FILES: u32 = 16_384;

/// The maps of the hold, and the programs on new mappings.
#[derive(Debug)]
pub(in crate::engine::bpf) struct MappingHold {
    work: WorkHold,
    mappings: Ring,
    known: OwnedFd,
}

impl MappingHold {
    /// Prepares to hold processes of the map `tracked`. None is held before `control` allows it.
    ///
    /// # Errors
    /// The kernel has no such work or does not describe its structures, or an error of bpf(2).
    pub(in crate::engine::bpf) fn new(
        control: &Control,
        tracked: BorrowedFd<'_>,
        running: RunningKernel<'_>,
    ) -> io::Result<Self> {
        let mappings = Ring::new(RING, rustix::param::page_size(), None)?;
        let known = sys::create_map_of::<[u8; FILE_BYTES], u32>(MapKind::LruHash, MAX_KNOWN_FILES)?;
        let maps = MappingMaps {
            control,
            tracked,
            mappings: mappings.as_fd(),
            known: known.as_fd(),
        };
        let btf = running.btf.ok_or_else(missing)?;
        let kernel = WorkKernel::find(btf, Kernel::find(btf, running.preemption)?)?;
        Ok(Self {
            work: WorkHold::new(kernel, maps)?,
            mappings,
            known,
        })
    }

    /// Takes the mappings that have arrived.
    pub(in crate::engine::bpf) fn take(&mut self) -> Vec<NewMapping> {
        let mut mappings = Vec::new();
        self.mappings.drain_arrived(|record| {
            mappings.extend(NewMapping::parse(record));
        });
        mappings
    }

    /// The probes of the files up to this mapping are attached. No process is held any more that maps its file.
    pub(in crate::engine::bpf) fn answer(&self, mapping: &NewMapping, control: &Control) {
        // Without that the next process is held, too.
        let _ = sys::insert(self.known.as_fd(), mapping.file);
        control.set_answered(mapping.token);
    }

    /// Drops the mappings that have arrived. `control` allows no hold any more.
    pub(in crate::engine::bpf) fn forget_new(&mut self) {
        let _: Vec<NewMapping> = self.take();
    }

    /// Number of executed programs that the program on `execve` was not run for: it may be preempted, and is not run for another thread on the
    /// CPU meanwhile. That on `mmap` is not counted: most of its runs are for other processes and system calls.
    pub(in crate::engine::bpf) fn missed(&self) -> u64 {
        sys::recursion_misses(self.work.executed.program.as_fd()).unwrap_or(0)
    }
}

impl AsFd for MappingHold {
    /// Readable when mappings have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mappings.as_fd()
    }
}

/// Twice the maximum number of threads that are held at a time.
const MAX_WORKS: u32 = 16_384;

/// The map of the work, and the programs that queue it.
#[derive(Debug)]
struct WorkHold {
    executed: TracepointProgram,
    _mapped: TracepointProgram,
    /// No work of it is run when it is closed.
    _works: OwnedFd,
}

impl WorkHold {
    /// # Errors
    /// The kernel cannot queue such work, or an error of bpf(2).
    fn new(kernel: WorkKernel, maps: MappingMaps<'_>) -> io::Result<Self> {
        let works = sys::create_works(MAX_WORKS)?;
        work::try_out(kernel.schedule, works.as_fd(), maps.control)?;
        let attach = |tracepoint, code| {
            TracepointProgram::attach(tracepoint, code, |map| match map {
                Map::Held => works.as_fd(),
                other => maps.descriptor(other),
            })
        };
        let mapped = attach(kernel.unlocked.tracepoint, program::mapped(kernel))?;
        let executed = attach(kernel.common.executed, program::executed(kernel))?;
        Ok(Self {
            executed,
            _mapped: mapped,
            _works: works,
        })
    }
}

/// Size of the key of a file: inode number, device, generation.
const FILE_BYTES: usize = 16;

/// A mapping of a file that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMapping {
    /// Number of such mappings until then, from 1 on.
    pub token: u64,
    /// When, ns of the trace's clock, after its record.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Whether it is held.
    pub is_held: bool,
    /// The file, as the kernel knows it.
    pub file: [u8; FILE_BYTES],
}

impl NewMapping {
    /// A record of the ring ([`program`]).
    fn parse(record: &[u8]) -> Option<Self> {
        let record: &[u8; CALL_BYTES as usize] = record.first_chunk()?;
        let double = |at| u64_at(record, at);
        let thread = double(program::THREAD as usize)?;
        Some(Self {
            token: double(program::TOKEN_AT as usize)?,
            time: double(program::TIME as usize)?,
            pid: (thread >> 32) as u32,
            tid: thread as u32,
            is_held: double(program::IS_HELD as usize)? != 0,
            file: bytes_at(record, program::FILE_AT as usize)?,
        })
    }
}

//! Holding a thread that maps a file with code that is not known yet, until the probes of the file are attached (`--no-gap`).
//!
//! Programs on `execve` and `mmap` (`mmap_lock_released`, when the kernel has written the record of the mapping) look up the file of the
//! descriptor or of the executable in a map of known files. If it is not there, they queue work for the thread ([`work`](super::hold::work)),
//! which holds it until the recorder has answered, before it returns to user mode: before the loader goes on, and long before constructors. So
//! nothing of the file has run, unless another thread of the process guesses the address. The thread is not stopped and gets no signal, so
//! parents and tracers do not notice.
//!
//! Each such mapping has a token, the number of those so far. The recorder answers in their order with the token up to which the probes of all
//! files are attached; then the file is known, and no thread is held for it any more.
//!
//! A breakpoint in the loader (`r_debug.r_brk`) is not needed. It would not be hit by mappings without the loader, and would have to be found
//! and planted in each loader. Memory that `mprotect` makes executable later is not seen: compilers at run time do that all the time, loaders
//! do not. Its gap is reported as without `--no-gap`.
//!
//! The hold ends after [`MAX_HOLD`], which is counted, and when the recorder is killed: the kernel runs no work of a map that is not open in
//! any process. While the recorder does not run (it is stopped, or waits for a disk), no further thread is held. Real-time threads are never
//! held: they could keep the recorder from its CPU.

mod kernel;
mod program;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use self::kernel::Kernel;
use self::program::CALL_BYTES;
use super::hold::work;
pub(crate) use super::hold::work::MAX_HOLD;
use crate::engine::bpf::control::Control;
use crate::engine::bpf::insn::Map;
use crate::engine::bpf::kernel::RunningKernel;
use crate::engine::bpf::rings::ringbuf::{Left, Ring};
use crate::engine::bpf::sys::{self, MapKind, MapShape};
use crate::engine::bpf::tracepoint::TracepointProgram;

/// Size of the ring of mappings, bytes: more than 1,000.
const RING: usize = 64 << 10;
/// Twice the maximum number of threads that are held at a time.
const MAX_WORKS: u32 = 16_384;
/// Maximum number of known files; of more, those that were not mapped for the longest time are forgotten.
const MAX_KNOWN_FILES: u32 = 16_384;
/// Size of the key of a file: inode number, device, generation.
const FILE_BYTES: usize = 16;

/// A mapping of a file that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewMapping {
    /// Number of such mappings until then, from 1 on.
    pub(crate) token: u64,
    /// When, ns of the trace's clock, after its record.
    pub(crate) time: u64,
    /// The thread.
    pub(crate) tid: u32,
    /// Whether it is held.
    pub(crate) is_held: bool,
    /// The file, as the kernel knows it.
    pub(crate) file: [u8; FILE_BYTES],
}

/// The maps of the hold, and the programs on new mappings.
#[derive(Debug)]
pub(in crate::engine::bpf) struct MappingHold {
    mappings: Ring,
    known: OwnedFd,
    programs: [TracepointProgram; 2],
    /// No work of it is run when it is closed.
    _works: OwnedFd,
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
        let kernel = running
            .btf
            .and_then(|btf| Kernel::find(btf, running.preemption));
        let kernel = kernel.ok_or_else(work::no_work)?;
        let works = sys::create_works(MAX_WORKS)?;
        work::try_out(kernel.schedule, works.as_fd(), control)?;
        let mappings = Ring::new(RING, rustix::param::page_size(), None)?;
        let known = sys::create_map(
            MapKind::LruHash,
            MapShape {
                key_size: FILE_BYTES as u32,
                value_size: 4,
                entries: MAX_KNOWN_FILES,
            },
        )?;
        let attach = |tracepoint, code| {
            TracepointProgram::attach(tracepoint, code, |map| match map {
                Map::Held => works.as_fd(),
                Map::Calls => mappings.as_fd(),
                Map::KnownFiles => known.as_fd(),
                Map::Control => control.as_fd(),
                _ => tracked,
            })
        };
        let programs = [
            attach(kernel.unlocked, program::mapped(kernel))?,
            attach(kernel.executed, program::executed(kernel))?,
        ];
        Ok(Self {
            mappings,
            known,
            programs,
            _works: works,
        })
    }

    /// Takes the mappings that have arrived.
    pub(in crate::engine::bpf) fn take(&mut self) -> Vec<NewMapping> {
        let mut mappings = Vec::new();
        // One that is still being written wakes this thread when it is complete.
        let end = self.mappings.written();
        let _: Left = self.mappings.drain(end, |record| {
            mappings.extend(parse(record));
        });
        mappings
    }

    /// No process is held any more that maps this file.
    pub(in crate::engine::bpf) fn know(&self, mapping: &NewMapping) {
        // Without that the next process is held, too.
        let _ = sys::insert_bytes(self.known.as_fd(), &mapping.file);
    }

    /// Number of executed programs that the program on `execve` was not run for: it may be preempted, and is not run for another thread on the
    /// CPU meanwhile. That on `mmap` is not counted: most of its runs are for other processes and system calls.
    pub(in crate::engine::bpf) fn missed(&self) -> u64 {
        let [_, executed] = &self.programs;
        sys::recursion_misses(executed.program.as_fd()).unwrap_or(0)
    }
}

impl AsFd for MappingHold {
    /// Readable when mappings have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mappings.as_fd()
    }
}

/// A record of the ring ([`program`]).
fn parse(record: &[u8]) -> Option<NewMapping> {
    let record: &[u8; CALL_BYTES as usize] = record.first_chunk()?;
    let double = |at: usize| {
        let bytes = record.get(at..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    };
    let thread = double(program::THREAD as usize)?;
    Some(NewMapping {
        token: double(program::TOKEN_AT as usize)?,
        time: double(program::TIME as usize)?,
        tid: thread as u32,
        is_held: double(program::IS_HELD as usize)? != 0,
        file: *record.get(program::FILE_AT as usize..)?.first_chunk()?,
    })
}

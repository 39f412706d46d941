//! Holding a thread by work ([`work`]), before it returns to user mode. It is not stopped and gets no signal, so that parents and tracers do not
//! notice.
//!
//! Each mapping has a token, the number of those so far. The recorder stores the token up to which the probes of all files are attached, and
//! the work waits for that. Real-time threads are not held.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::sys;

use super::kernel::WorkKernel;
use super::maps::MappingMaps;
use super::work_program;
use crate::engine::bpf::processes::hold::work;
use crate::engine::bpf::tracepoint::TracepointProgram;

/// Twice the maximum number of threads that are held at a time.
const MAX_WORKS: u32 = 16_384;

/// The map of the work, and the programs that queue it.
#[derive(Debug)]
pub(super) struct WorkHold {
    pub(super) executed: TracepointProgram,
    _mapped: TracepointProgram,
    /// No work of it is run when it is closed.
    _works: OwnedFd,
}

impl WorkHold {
    /// # Errors
    /// The kernel cannot queue such work, or an error of bpf(2).
    pub(super) fn new(kernel: WorkKernel, maps: MappingMaps<'_>) -> io::Result<Self> {
        let works = sys::create_works(MAX_WORKS)?;
        work::try_out(kernel.schedule, works.as_fd(), maps.control)?;
        let attach = |tracepoint, code| {
            TracepointProgram::attach(tracepoint, code, |map| match map {
                Map::Held => works.as_fd(),
                other => maps.descriptor(other),
            })
        };
        let mapped = attach(kernel.unlocked.tracepoint, work_program::mapped(kernel))?;
        let executed = attach(kernel.common.executed, work_program::executed(kernel))?;
        Ok(Self {
            executed,
            _mapped: mapped,
            _works: works,
        })
    }
}

//! Holding a thread by stopping its process (`SIGSTOP`), on kernels without [`work`](crate::engine::bpf::processes::hold::work) for tasks.
//!
//! The program that finds the file sends the signal to the thread, which stops before it returns to user mode. The process is in a map
//! ([`stopped_map`](crate::engine::bpf::lossless::stopped_map)), and the recorder continues it when all of its mappings are answered. The guard
//! process does so after [`MAX_HOLD`], and when the recorder has ended, however that came; if both are killed, the next recorder that stops processes
//! or `doctor --heal` does ([`lossless`](crate::engine::bpf::lossless)). `SIGCONT` is sent by a handle of the process, after a check that it is not a
//! later one with the same id.
//!
//! What of others a stop could disturb:
//! * **All threads of the process stop**, wherever they are, and all stay stopped until the probes are planted. Some calls in which other threads
//!   wait end with `EINTR` (signal(7), "Interruption of system calls and library functions by stop signals"), and a handler of `SIGCONT` is run.
//! * **Its parent** gets `SIGCHLD`, and `waitpid` with `WUNTRACED` returns. A shell with job control reports the job as stopped, and takes the
//!   terminal. So this is said at the start.
//! * **A stop of the user** is not ended. The signals that stop and continue processes are seen where they are generated (`signal_generate`). After a
//!   `SIGSTOP` of others, or a `SIGCONT`, the stop is not ours any more: the process is removed from the map, and not continued by us. `SIGTSTP`,
//!   `SIGTTIN` and `SIGTTOU` may be handled or blocked. They are sent again after our `SIGCONT`, which removes them, so that the process may run for a moment.
//!   A process that was stopped before maps nothing. What is sent between our last look at the map and our `SIGCONT`, microseconds, is lost.
//! * **A process that is traced** (ptrace(2)) is not stopped: the tracer would be told of the signal, a debugger would stop at it, and others might
//!   discard it. Its mappings are counted as not held. If only other threads of the process are traced, their tracer is told of the stop.
//!   Who attaches while a process is stopped finds it stopped; our `SIGCONT` ends no stop of a tracer.
//! * **The first process of a pid namespace** is stopped as any other: the signal is of the kernel, and cannot be ignored. The system's is not.
//! * **`vfork`**: a child that executes a program has released its parent before. One that maps a file before blocks its parent for as long.
//! * **The recorder's ancestors, and who reads its output**, are never stopped, as in lossless recordings; of the readers that is said.
//! * **A real-time process** is stopped as any other: it does not run then.
//! * **A process that is killed** ends as ever: `SIGKILL` ends a stop.
//!
//! Libraries and other mappings are seen at the return of `ksys_mmap_pgoff`, which needs programs on functions: x86-64, and arm64 from Linux 6.4
//! on. `mmap_lock_released` is second choice: older kernels (those up to 5.10 do not have it) find the path of the control group for it, at each page
//! fault of the host, and there it is not used. Where neither is possible, only programs that are executed are waited for, which is said, and mappings
//! have their gap. If two threads of a process map different new files at once, and the first file is done before the second record is written, the
//! second thread is not held, which is noticed.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::sys::ProgramKind;
use usdtrec_kernel::clocks::trace_clock;
use usdtrec_kernel::host::process::Process;

use super::kernel::StopKernel;
use super::maps::MappingMaps;
use super::new_mapping::NewMapping;
use super::stop_program;
use crate::engine::bpf::control::Control;
use crate::engine::bpf::lossless::stopped::{GUARD_HOLD, Stopped};
use crate::engine::bpf::processes::hold::work::MAX_HOLD;
use crate::engine::bpf::tracepoint::TracepointProgram;
use crate::engine::guard_process::GuardDeath;
use crate::recording::attach_callbacks::Caution;
use crate::stop_reason::StopReason;

/// The stopped processes, and the programs that stop them.
#[derive(Debug)]
pub(super) struct StopHold {
    pub(super) executed: TracepointProgram,
    _mapped: Option<TracepointProgram>,
    _signalled: TracepointProgram,
    /// Dropped after the programs: its guard waits for them.
    stopped: Stopped,
    /// Processes with mappings that are not answered, and the numbers of these.
    waiting: HashMap<u32, usize>,
    /// Processes whose mappings are all answered.
    answered: Vec<u32>,
    /// Number of mappings so far.
    mappings: u64,
}

impl StopHold {
    /// Returns why only programs that are executed are waited for, too, if that is so.
    ///
    /// # Errors
    /// An error of bpf(2), or of starting the guard.
    pub(super) fn new(
        kernel: StopKernel,
        maps: MappingMaps<'_>,
        say: &dyn Fn(&Caution),
    ) -> io::Result<(Self, Option<io::Error>)> {
        let stopped = Stopped::new(StopReason::NewFile, maps.control, say)?;
        let attach = |kind, code| {
            TracepointProgram::attach_as(kind, code, |map| match map {
                Map::Stopped => stopped.as_fd(),
                Map::Exempt => stopped.exempt(),
                other => maps.descriptor(other),
            })
        };
        let signalled = ProgramKind::Tracepoint(kernel.signalled);
        let signalled = attach(signalled, stop_program::signalled(kernel))?;
        let executed = ProgramKind::Tracepoint(kernel.common.executed);
        let executed = attach(executed, stop_program::executed(kernel))?;
        let returned = match kernel.mmap {
            Some(mmap) => attach(ProgramKind::Return(mmap), stop_program::mapped(kernel)),
            None => Err(io::Error::other(
                "the kernel does not describe its function ksys_mmap_pgoff",
            )),
        };
        let mapped = returned.or_else(|error| match kernel.unlocked {
            Some(unlocked) => {
                let kind = ProgramKind::Tracepoint(unlocked.tracepoint);
                attach(kind, stop_program::unlocked(kernel, unlocked))
            }
            None => Err(error),
        });
        let (mapped, why_not) = match mapped {
            Ok(mapped) => (Some(mapped), None),
            Err(error) => (None, Some(error)),
        };
        let hold = Self {
            executed,
            _mapped: mapped,
            _signalled: signalled,
            stopped,
            waiting: HashMap::new(),
            answered: Vec::new(),
            mappings: 0,
        };
        Ok((hold, why_not))
    }

    /// Adds mappings that have arrived, which get their tokens.
    pub(super) fn add(&mut self, mappings: &mut [NewMapping]) {
        for mapping in mappings {
            self.mappings += 1;
            mapping.token = self.mappings;
            if mapping.is_held {
                *self.waiting.entry(mapping.pid).or_default() += 1;
            }
        }
    }

    /// Whether the thread has not run since the mapping: its process is in the map, and it is stopped or about to be.
    pub(super) fn is_held(&self, mapping: &NewMapping) -> bool {
        self.stopped.contains(mapping.pid) && is_stopping(mapping.tid).unwrap_or(false)
    }

    /// The probes of all files up to this mapping are attached, or it has none. Counts it if its process has been continued before. It may have been
    /// stopped again since.
    pub(super) fn answer(&mut self, mapping: &NewMapping, control: &Control) {
        if !mapping.is_held {
            return;
        }
        let held = trace_clock::now().saturating_sub(mapping.time);
        if Duration::from_nanos(held) >= GUARD_HOLD || !self.stopped.contains(mapping.pid) {
            control.count_unheld();
        }
        let Some(waiting) = self.waiting.get_mut(&mapping.pid) else {
            return;
        };
        *waiting -= 1;
        if *waiting == 0 {
            self.waiting.remove(&mapping.pid);
            self.answered.push(mapping.pid);
        }
    }

    /// Continues the processes whose mappings are all answered, if no other ones have arrived since, and those that were stopped for too long, which the
    /// guard does, too.
    pub(super) fn go_on(&mut self, have_others_arrived: bool) {
        if !have_others_arrived {
            for pid in self.answered.drain(..) {
                if !self.waiting.contains_key(&pid) {
                    self.stopped.continue_process(pid);
                }
            }
        }
        if !self.waiting.is_empty() {
            self.stopped.continue_after(MAX_HOLD);
        }
    }

    /// Continues all. Counts the mappings that are not answered and whose processes have been continued before.
    pub(super) fn let_go(&mut self, control: &Control) {
        for (pid, mappings) in self.waiting.drain() {
            if !self.stopped.contains(pid) {
                (0..mappings).for_each(|_| control.count_unheld());
            }
        }
        self.stopped.continue_after(Duration::ZERO);
    }

    /// Starts another guard if it was killed. Returns that it was.
    pub(super) fn replace_guard(&mut self, control: &Control) -> Option<GuardDeath> {
        self.stopped.replace_guard(control)
    }
}

/// Whether a thread is stopped, or will be before it returns to user mode; `None` if it has ended.
fn is_stopping(tid: u32) -> Option<bool> {
    const PENDING: u64 = 1 << (libc::SIGSTOP - 1);
    let thread = Process::open(tid.try_into().ok()?).ok()?;
    // It stops when it has taken the signal.
    let is_pending = thread.status().ok()?.pending & PENDING != 0;
    let state = thread.stat().ok()?.state;
    Some(is_pending || matches!(state, b'T' | b't'))
}

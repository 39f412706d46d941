//! Attaching probes: signals that end it, and cautions about its cost.

use std::fmt;
use std::io;

use usdtrec_kernel::host::profiler_panic::KernelVersion;
use usdtrec_kernel::signals::Signals;

use crate::stop_reason::StopReason;

/// Callbacks of attaching.
#[derive(Clone, Copy)]
pub struct Planting<'a> {
    /// Signals, each of which ends attaching.
    pub signals: &'a Signals,
    /// Called with what the user should know before the recording begins.
    pub say: &'a dyn Fn(&Caution),
}

/// What the user should know before the recording begins.
#[derive(Debug)]
pub enum Caution {
    /// There are many perf events, which the kernel removes one after the other.
    SlowEnd {
        /// Number of events.
        events: usize,
        /// Expected duration, seconds.
        seconds: usize,
    },
    /// Processes that a killed recorder had stopped were continued.
    Continued {
        /// Process ids.
        pids: Vec<u32>,
    },
    /// Processes are never stopped, because they read the recorder's output: hits of theirs may be lost.
    NeverStopped {
        /// Why others are stopped.
        reason: StopReason,
        /// Process ids.
        pids: Vec<u32>,
    },
    /// Processes stay stopped if the recorder and its guard process are both killed.
    NotKept {
        /// Why they are stopped.
        reason: StopReason,
        /// The error of keeping the map of stopped processes.
        error: io::Error,
    },
    /// This kernel may panic if threads that hit probes are profiled, too.
    ProfilerPanic(KernelVersion),
    /// What must be undone if the recorder is killed cannot be noted.
    NotNoted(io::Error),
    /// Threads that map new files are held in the kernel until the probes are planted.
    HeldInKernel,
    /// Processes that map new files are stopped until the probes are planted.
    StoppedAtMappings {
        /// Why their threads are not held in the kernel; `None` if that was asked for.
        because: Option<io::Error>,
        /// Why only those are stopped that execute a file; `None` if others are, too.
        only_executed: Option<io::Error>,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowEnd { events, seconds } => write!(
                f,
                "removing {events} events at the end takes the kernel about {seconds} s"
            ),
            Self::Continued { pids } => write!(
                f,
                "continued processes that a killed recorder had stopped: {pids:?}"
            ),
            Self::NeverStopped { pids, .. } => write!(
                f,
                "processes that read the output of this recording are never stopped, so that hits of theirs may be lost: {pids:?}"
            ),
            Self::NotKept { error, .. } => write!(
                f,
                "if this recorder and its guard process are both killed, processes stay stopped, and cannot be found again: {error}"
            ),
            Self::ProfilerPanic(version) => write!(
                f,
                "Linux {version} may panic when a thread that has hit a probe ends while a sampling profiler takes its user stack (is_uprobe_at_func_entry)"
            ),
            Self::NotNoted(error) => write!(
                f,
                "what must be undone if this recorder is killed cannot be noted: {error}"
            ),
            Self::HeldInKernel => f.write_str(
                "threads that map new files are held in the kernel until the probes are planted, which no other process notices",
            ),
            Self::StoppedAtMappings {
                because,
                only_executed,
            } => {
                f.write_str("processes that ")?;
                f.write_str(match only_executed {
                    None => "map new files",
                    Some(_) => "execute new files",
                })?;
                f.write_str(
                    " are stopped (SIGSTOP), with all of their threads, until the probes are planted, for two seconds at most: their parents, shells for example, can \
                     see it",
                )?;
                if let Some(error) = because {
                    write!(f, "; threads cannot be held in the kernel: {error}")?;
                }
                if let Some(error) = only_executed {
                    write!(
                        f,
                        "; libraries that are loaded are not waited for, and their first hits are not recorded: {error}"
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Planting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planting")
    }
}

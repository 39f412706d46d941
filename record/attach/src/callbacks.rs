//! Attaching probes: signals that end it, and cautions about its cost.

use std::fmt;
use std::io;

use usdtrec_kernel::host::kernel_version::KernelVersion;
use usdtrec_kernel::signals::Signals;

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
    /// This kernel may panic if threads that hit probes are profiled, too.
    ProfilerPanic(KernelVersion),
    /// What must be undone if the recorder is killed cannot be noted.
    NotNoted(io::Error),
    /// Why threads that map new files cannot be held until the probes are attached.
    NotHeld(io::Error),
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowEnd { events, seconds } => write!(
                f,
                "removing {events} events at the end takes the kernel about {seconds} s"
            ),
            Self::ProfilerPanic(version) => write!(
                f,
                "Linux {version} may panic when a thread that has hit a probe ends while a sampling profiler reads its user stack (is_uprobe_at_func_entry)"
            ),
            Self::NotNoted(error) => write!(
                f,
                "cannot store what must be undone if this recorder is killed: {error}"
            ),
            Self::NotHeld(error) => write!(
                f,
                "threads that map new files cannot be held until the probes are attached: the first hits in these files are missing, which is reported: {error}"
            ),
        }
    }
}

impl fmt::Debug for Planting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planting")
    }
}

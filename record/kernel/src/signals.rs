//! The signals of a recording. Each signal that would end the process without a word ends the recording in order, but those of faults. SIGUSR2 starts a
//! new file; SIGUSR1 and SIGUSR2 do nothing else, as in `perf record`.
//!
//! A signal that the caller ignores (`nohup`: SIGHUP) stays ignored. SIGINT and SIGTERM end a recording all the same, as in perf: background jobs of scripts
//! have SIGINT ignored, and `kill -INT` is how scripts end a recorder.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libc::{SIGPWR, SIGSTKFLT};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};

use crate::KernelError;
use crate::host::capabilities;
use crate::host::inherited::{handle_signals, is_ignored, wake_at};

/// Signals that end a recording in order, besides those of real time. The default action of each would end the process without a word.
const ENDING: [i32; 11] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO, SIGPWR,
    SIGSTKFLT,
];

/// Whether a signal to end has arrived, for threads other than that of the loop.
#[derive(Debug)]
pub struct EndSignal {
    arrived: UnixStream,
    ends: Arc<AtomicBool>,
}

impl EndSignal {
    /// Whether it has.
    pub fn has_arrived(&self) -> bool {
        self.ends.load(Ordering::Relaxed) || is_readable(self.arrived.as_fd(), Duration::ZERO)
    }

    /// Another handle.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            arrived: self.arrived.try_clone()?,
            ends: Arc::clone(&self.ends),
        })
    }
}

/// Catches the signals from its creation to the end of the process.
#[derive(Debug)]
pub struct Signals {
    arrived: UnixStream,
    switch: Arc<AtomicBool>,
    output: Option<File>,
    /// Whether the recording ends.
    ends: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to catch them; SIGUSR2 starts a new file, or writes the last seconds to one, only if `switch` is set.
    ///
    /// # Errors
    /// [`KernelError::Host`] if the handlers cannot be set.
    pub fn catch(switch: bool) -> Result<Self, KernelError> {
        let failed = KernelError::host("signals");
        let (arrived, sent) = UnixStream::pair().map_err(failed)?;
        arrived.set_nonblocking(true).map_err(failed)?;
        let sent = Arc::new(sent);
        let of_real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
        let of_real_time = of_real_time.filter(|&signal| signal != capabilities::signal());
        for signal in ENDING.into_iter().chain(of_real_time) {
            if matches!(signal, SIGINT | SIGTERM) || !is_ignored(signal) {
                wake_at(signal, Arc::clone(&sent)).map_err(failed)?;
            }
        }
        handle_signals();
        // A file that may not grow any longer is an error of the write, not our end. Caught and not ignored: a command that we
        // run is to find the signals as they were.
        for signal in [SIGXFSZ, SIGUSR1] {
            signal_hook::flag::register(signal, Arc::default()).map_err(failed)?;
        }
        let signals = Self {
            arrived,
            switch: Arc::default(),
            output: None,
            ends: Arc::default(),
        };
        let switched = if switch {
            Arc::clone(&signals.switch)
        } else {
            Arc::default()
        };
        signal_hook::flag::register(SIGUSR2, switched).map_err(failed)?;
        Ok(signals)
    }

    /// Also ends the recording when the reader of this output (a pipe, a terminal) has closed it.
    pub fn watch_output(&mut self, output: File) {
        self.output = Some(output);
    }

    /// The output that somebody should read.
    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// A descriptor that is readable once a signal to end has arrived.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }

    /// Whether a signal to end has arrived since the last `forget`.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for a signal to end, or for so long. Whether there is one.
    #[must_use]
    pub fn wait(&self, time: Duration) -> bool {
        is_readable(self.descriptor(), time)
    }

    /// A recording begins, which no signal has ended yet. An earlier one of this process may have been ended by one.
    pub fn begin(&self) -> io::Result<EndSignal> {
        self.ends.store(false, Ordering::Relaxed);
        self.end_signal()
    }

    /// A handle that shows whether a signal to end has arrived.
    pub fn end_signal(&self) -> io::Result<EndSignal> {
        Ok(EndSignal {
            arrived: self.arrived.try_clone()?,
            ends: Arc::clone(&self.ends),
        })
    }

    /// Clears the signals that have arrived: they are being handled, and another one ends waiting.
    pub fn forget(&self) {
        self.ends.store(true, Ordering::Relaxed);
        let mut bytes = [0; 64];
        // One byte for each; the stream does not block.
        while matches!((&self.arrived).read(&mut bytes), Ok(1..)) {}
    }

    /// Writes a byte to `wake` at SIGUSR2, too.
    pub fn wake_at_switch(&self, wake: UnixStream) -> io::Result<()> {
        signal_hook::low_level::pipe::register(SIGUSR2, wake).map(|_| ())
    }

    /// Whether SIGUSR2 has arrived since the last call.
    pub fn take_switch(&self) -> bool {
        self.switch.swap(false, Ordering::Relaxed)
    }
}

/// Whether a descriptor becomes readable within this time.
fn is_readable(descriptor: BorrowedFd<'_>, time: Duration) -> bool {
    let timeout = Timespec::try_from(time).ok();
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    matches!(poll(&mut polled, timeout.as_ref()), Ok(1..))
}

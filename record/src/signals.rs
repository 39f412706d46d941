//! The signals of a recording: SIGINT, SIGTERM and SIGHUP end it, SIGUSR2 starts a new file.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};

use crate::error::RecordError;

/// Whether a signal to end has arrived, for threads other than that of the loop.
#[derive(Debug)]
pub(crate) struct Asked {
    arrived: UnixStream,
    ends: Arc<AtomicBool>,
}

impl Asked {
    /// Whether it has.
    pub(crate) fn to_end(&self) -> bool {
        self.ends.load(Ordering::Relaxed) || is_readable(self.arrived.as_fd(), Duration::ZERO)
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
    /// Begins to catch them; SIGUSR2 only if `switch` is set.
    ///
    /// # Errors
    /// [`RecordError::Host`] if the handlers cannot be set.
    pub fn catch(switch: bool) -> Result<Self, RecordError> {
        let failed = |source: io::Error| RecordError::Host {
            what: "signals".to_owned(),
            source,
        };
        let (arrived, sent) = UnixStream::pair().map_err(failed)?;
        arrived.set_nonblocking(true).map_err(failed)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let sent = sent.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, sent).map_err(failed)?;
        }
        // A file that may not grow any longer is an error of the write, not our end. Caught and not ignored: a command that we
        // run is to find the signal as it was.
        signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        let signals = Self {
            arrived,
            switch: Arc::default(),
            output: None,
            ends: Arc::default(),
        };
        if switch {
            signal_hook::flag::register(SIGUSR2, Arc::clone(&signals.switch)).map_err(failed)?;
        }
        Ok(signals)
    }

    /// Also ends the recording when the reader of this output (a pipe, a terminal) has closed it.
    pub fn watch_output(&mut self, output: File) {
        self.output = Some(output);
    }

    /// The output that somebody should read.
    pub(crate) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// A descriptor that is readable once a signal to end has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }

    /// Whether a signal to end has arrived since the last `forget`.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for a signal to end, or for so long. Whether there is one.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        is_readable(self.descriptor(), time)
    }

    /// A handle that shows whether a signal to end has arrived.
    pub(crate) fn asked(&self) -> io::Result<Asked> {
        Ok(Asked {
            arrived: self.arrived.try_clone()?,
            ends: Arc::clone(&self.ends),
        })
    }

    /// Clears the signals that have arrived: they are being handled, and another one ends waiting.
    pub(crate) fn forget(&self) {
        self.ends.store(true, Ordering::Relaxed);
        let mut bytes = [0; 64];
        // One byte for each; the stream does not block.
        while matches!((&self.arrived).read(&mut bytes), Ok(1..)) {}
    }

    /// Whether SIGUSR2 has arrived since the last call.
    pub(crate) fn take_switch(&self) -> bool {
        self.switch.swap(false, Ordering::Relaxed)
    }
}

/// Whether a descriptor becomes readable within this time.
fn is_readable(descriptor: BorrowedFd<'_>, time: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    matches!(poll(&mut polled, Some(&timeout)), Ok(1..))
}

//! The signals of a recording: SIGINT, SIGTERM and SIGHUP end it, SIGUSR2 asks for a new file.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};

use crate::RecordError;

/// Catches the signals from its creation to the end of the process.
#[derive(Debug)]
pub struct Signals {
    arrived: UnixStream,
    switch: Arc<AtomicBool>,
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
        };
        if switch {
            signal_hook::flag::register(SIGUSR2, Arc::clone(&signals.switch)).map_err(failed)?;
        }
        Ok(signals)
    }

    /// A descriptor that is readable once a signal to end has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }

    /// Whether a new file was asked for since the last call.
    pub(crate) fn take_switch(&self) -> bool {
        self.switch.swap(false, Ordering::Relaxed)
    }
}

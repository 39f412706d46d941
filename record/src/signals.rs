//! The signals of a recording: SIGINT, SIGTERM and SIGHUP end it, SIGUSR2 asks for a new file.

use std::fs::File;
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
    output: Option<File>,
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
            output: None,
        };
        if switch {
            signal_hook::flag::register(SIGUSR2, Arc::clone(&signals.switch)).map_err(failed)?;
        }
        Ok(signals)
    }

    /// Takes it for a signal to end, too, when nobody reads this output any more (a pipe, a terminal); and lets a second SIGINT
    /// or SIGTERM end the process at once, which may wait for whoever should read.
    ///
    /// # Errors
    /// [`RecordError::Host`] if the handlers cannot be set.
    pub fn watch_output(&mut self, output: File) -> Result<(), RecordError> {
        let failed = |source: io::Error| RecordError::Host {
            what: "signals".to_owned(),
            source,
        };
        let caught = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // As a shell gives the status of a process that a signal ended.
            let status = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&caught))
                .map_err(failed)?;
            signal_hook::flag::register(signal, Arc::clone(&caught)).map_err(failed)?;
        }
        self.output = Some(output);
        Ok(())
    }

    /// The output that somebody should read.
    pub(crate) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
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

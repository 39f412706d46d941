//! The signals that end a recording: SIGINT, SIGTERM, SIGHUP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::RecordError;

/// Catches the signals from its creation to the end of the process.
#[derive(Debug)]
pub struct Signals {
    arrived: UnixStream,
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// [`RecordError::Host`] if the handlers cannot be set.
    pub fn catch() -> Result<Self, RecordError> {
        let failed = |source: io::Error| RecordError::Host {
            what: "signals".to_owned(),
            source,
        };
        let (arrived, sent) = UnixStream::pair().map_err(failed)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let sent = sent.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, sent).map_err(failed)?;
        }
        Ok(Self { arrived })
    }

    /// A descriptor that is readable once a signal has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }
}

//! Errors of recording.

use std::io;
use std::path::PathBuf;

use usdtrec_format::escape::shown;
use usdtrec_format::trace::WriteError;

/// Error of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The value of an option is invalid.
    #[error("{0}")]
    Usage(String),
    /// No probe matches; the message has the pattern and similar names.
    #[error("{0}")]
    NoProbe(String),
    /// A probe is not attached because a check failed.
    #[error("{0}")]
    Refused(String),
    /// This user has no permission to record.
    #[error("{0}")]
    Privilege(String),
    /// A process or thread to trace does not exist.
    #[error("{0}")]
    Target(String),
    /// The command could not be run.
    #[error("cannot run {command:?}")]
    Command {
        /// The command.
        command: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Information about the host could not be read.
    #[error("cannot read {what}")]
    Host {
        /// Path or system call.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel refused an event.
    #[error("{what}")]
    Kernel {
        /// The operation, and the possible reason.
        what: String,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// A signal arrived before recording began; the message says what is still being undone.
    #[error("{0}")]
    Interrupted(String),
    /// The trace file could not be created.
    #[error("cannot create the trace file")]
    Output(#[source] io::Error),
    /// The trace file was deleted or replaced.
    #[error("{} was deleted or replaced while it was written: the recording is lost", shown(.0))]
    Deleted(PathBuf),
    /// Writing the trace failed.
    #[error("the trace ends early; everything written before is complete")]
    Write(#[from] WriteError),
}

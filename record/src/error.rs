//! What can go wrong when recording.

use std::io;
use std::path::PathBuf;

use usdtrec_format::escape::shown;
use usdtrec_format::trace::WriteError;

/// Why nothing, or nothing more, is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// An option's text is not what it should be.
    #[error("{0}")]
    Usage(String),
    /// No probe was found for what was asked; the text says what was and what comes close.
    #[error("{0}")]
    NoProbe(String),
    /// A probe will not be planted.
    #[error("{0}")]
    Refused(String),
    /// The kernel does not let this user record.
    #[error("{0}")]
    Privilege(String),
    /// A thing to be traced is not there.
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
    /// Something that this host should say could not be read.
    #[error("cannot read {what}")]
    Host {
        /// A path, or a system call.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel refused an event.
    #[error("{what}")]
    Kernel {
        /// What was asked, and what may be the reason.
        what: String,
        /// Its error.
        #[source]
        source: io::Error,
    },
    /// A signal asked to end before recording began; the text says what is still being undone.
    #[error("{0}")]
    Interrupted(String),
    /// A trace file could not be made.
    #[error("cannot make a trace file")]
    Output(#[source] io::Error),
    /// The trace has no name any more.
    #[error("{} was deleted or replaced while it was written: what was recorded is lost", shown(.0))]
    Deleted(PathBuf),
    /// The trace could not be written on.
    #[error("the trace ends early, what was written before is whole")]
    Write(#[from] WriteError),
}

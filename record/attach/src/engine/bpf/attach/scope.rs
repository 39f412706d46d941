//! The processes that probes are attached to.

use std::fmt;
use std::io;

use super::super::processes::children::EverywhereReason;

/// The processes that probes are attached to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scope<'a> {
    /// The recorded processes.
    Recorded,
    /// The recorded processes and their children.
    RecordedAndChildren,
    /// All processes of the files.
    All,
    /// All processes of the files, after they had been attached to the recorded processes only.
    AllAfterAll(EverywhereReason),
    /// All processes of the files, because the kernel cannot hold children until probes are attached to them.
    AllWithoutHold(&'a io::Error),
}

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("in the recorded processes alone"),
            Self::RecordedAndChildren => {
                f.write_str("in the recorded processes and their children alone")
            }
            Self::All => f.write_str("in all processes of the files"),
            Self::AllAfterAll(reason) => write!(f, "{}, because {reason}", Self::All),
            Self::AllWithoutHold(error) => {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                write!(f, "{}, because children cannot be held: {first}", Self::All)
            }
        }
    }
}

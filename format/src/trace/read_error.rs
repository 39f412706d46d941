//! Errors of opening a trace.

use std::io;
use std::path::PathBuf;

use crate::escape::shown;

/// Error of opening a trace. Damage in a trace that can be opened is [`Damage`](super::Damage).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A system call failed.
    #[error("cannot read {}", shown(.path))]
    Io {
        /// File.
        path: PathBuf,
        /// Error.
        #[source]
        source: io::Error,
    },
    /// The file is not a supported perf.data file, or is cut before its data.
    #[error("offset {offset}: expected {expected}, found {found}")]
    Format {
        /// File offset.
        offset: u64,
        /// What was expected at the offset.
        expected: String,
        /// What was found.
        found: String,
    },
}

impl ReadError {
    pub(crate) fn format(offset: u64, expected: impl ToString, found: impl ToString) -> Self {
        Self::Format {
            offset,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// Without a path, which [`Trace::open`](super::Trace::open) fills in.
impl From<io::Error> for ReadError {
    fn from(source: io::Error) -> Self {
        Self::Io {
            path: PathBuf::new(),
            source,
        }
    }
}

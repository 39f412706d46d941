//! Why a file cannot be read.

use std::io;
use std::path::PathBuf;

use crate::escape::shown;

/// Why a file cannot be read at all. What is wrong inside a readable file is [`Damage`](super::Damage).
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
    /// The file is not one that we read, or cut before its data.
    #[error("offset {offset}: expected {expected}, found {found}")]
    Format {
        /// File offset.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is.
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

/// A system call on a file whose path [`Trace::open`](super::Trace::open) knows.
impl From<io::Error> for ReadError {
    fn from(source: io::Error) -> Self {
        Self::Io {
            path: PathBuf::new(),
            source,
        }
    }
}

//! Errors of opening a trace.

use std::io;
use std::path::{Path, PathBuf};

use super::codec::IoCause;
use crate::escape::shown;

/// Error of opening a trace. Damage in a trace that can be opened is [`Damage`](super::Damage).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file, or a file of a directory, cannot be opened.
    #[error("cannot read {}", shown(.path))]
    Open {
        /// File.
        path: PathBuf,
        /// Error.
        #[source]
        source: io::Error,
    },
    /// A read failed in the middle of the trace. The message does not name the file.
    #[error("cannot read at offset {offset}")]
    Read {
        /// Offset in the file, in the concatenation of a directory's files, or in the stream of a pipe.
        offset: u64,
        /// Error.
        #[source]
        source: io::Error,
    },
    /// The file is not a supported perf.data file, or is cut before its data. The message does not name the file.
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

    /// The system's error, if it is the cause.
    pub(crate) fn into_cause(self) -> IoCause {
        match self {
            Self::Open { source, .. } | Self::Read { source, .. } => source.into(),
            error @ Self::Format { .. } => io::Error::other(error).into(),
        }
    }

    /// For `map_err`: adds the offset to the error of a read.
    pub(crate) fn at(offset: u64) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read { offset, source }
    }

    /// For `map_err`: adds the path to the error of opening a file.
    pub(crate) fn open(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Open { path, source }
    }
}

//! What can be wrong with compressed bytes.

use std::io;

use thiserror::Error;

use super::super::io_cause::IoCause;

/// Why a frame or a piece of a stream cannot be decompressed. Lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes are not zstd's, or there is no memory for its window.
    #[error(transparent)]
    Zstd(IoCause),
    /// The content has another length than its header says.
    #[error("expected {expected} bytes of records, found {found}")]
    Length {
        /// By the header.
        expected: usize,
        /// Of the content.
        found: usize,
    },
    /// The content is longer than this limit.
    #[error("expected at most {0} bytes of records, found more")]
    TooLong(usize),
}

impl From<io::Error> for CodecError {
    fn from(error: io::Error) -> Self {
        Self::Zstd(error.into())
    }
}

//! What can be wrong with compressed bytes.

use std::io;

use thiserror::Error;

/// Why a frame or a piece of a stream cannot be decompressed.
#[derive(Debug, Error)]
pub(crate) enum CodecError {
    /// The bytes are not zstd's, or there is no memory for its window.
    #[error(transparent)]
    Zstd(#[from] io::Error),
    /// The content has another length than its header says, bytes.
    #[error("expected {expected} bytes of records, found {found}")]
    Length { expected: usize, found: usize },
    /// The checksum at the end of the frame is not that of its content. The C library reports that itself.
    #[cfg(any(test, not(feature = "zstd")))]
    #[error("the frame's checksum does not match")]
    Checksum,
    /// The content is longer than the limit, bytes.
    #[error("it holds more than {0} bytes of records")]
    TooLong(usize),
}

//! What can be wrong with the compressed stream of `perf record -z`.

use thiserror::Error;

use super::codec::CodecError;

/// Why a compressed stream cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A record is shorter than the piece that it claims to have.
    #[error("the compressed stream breaks here: a piece is cut")]
    Cut,
    /// A piece cannot be decompressed.
    #[error("the compressed stream breaks here: {0}")]
    Codec(#[from] CodecError),
    /// The decompressed bytes are no records.
    #[error("the compressed stream breaks here: the decompressed bytes are not records")]
    NoRecords,
}

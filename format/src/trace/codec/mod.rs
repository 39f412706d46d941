//! zstd compression, with either of two implementations.
//!
//! With the feature `zstd` (the default) it is the C library, which decodes these records 3 to 4 times and compresses them 6
//! times as fast; without it, `ruzstd`, which is pure Rust. Tests build both and compare them.
//!
//! Recordings have level 3 instead of perf's 1: records of a few numbers become 12 % smaller for the same CPU time and
//! are read 11 % faster. With strings, copies of the stack or small flushes it is no worse.

#[cfg(feature = "zstd")]
mod native;
#[cfg(any(test, not(feature = "zstd")))]
mod pure;
#[cfg(test)]
mod tests;

use std::{fmt, io};

use thiserror::Error;

#[cfg(feature = "zstd")]
pub(crate) use native::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};
#[cfg(not(feature = "zstd"))]
pub(crate) use pure::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};

/// Compression of the chunks of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression: plain records.
    None,
    /// zstd at this level (1 to 22).
    Zstd(i32),
}

/// Maximum length of a block of zstd, bytes.
const BLOCK: usize = 128 << 10;

/// Makes a frame of `bytes`, at most 4 GiB, whose blocks are not compressed (RFC 8878): for data whose compression ratio readers would refuse.
pub(crate) fn store(bytes: &[u8]) -> Vec<u8> {
    /// A single segment, whose content size has 4 bytes, without checksum.
    const DESCRIPTOR: u8 = 0b1010_0000;
    let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    frame.push(DESCRIPTOR);
    frame.extend((bytes.len() as u32).to_le_bytes());
    let mut blocks = bytes.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        // The type of the block, raw, is 0.
        let header = (block.len() as u32) << 3 | is_last;
        frame.extend(header.to_le_bytes().iter().take(3));
        frame.extend_from_slice(block);
    }
    frame
}

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

/// Kind and message of an [`io::Error`], which itself can be neither copied nor compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoCause {
    /// The kind.
    pub kind: io::ErrorKind,
    /// The message of the system, or of the library that returned the error.
    pub message: String,
}

impl From<&io::Error> for IoCause {
    fn from(error: &io::Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl From<io::Error> for IoCause {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl fmt::Display for IoCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for IoCause {}

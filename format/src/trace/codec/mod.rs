//! zstd compression, with either of two implementations.
//!
//! With the feature `zstd` (the default) it is the C library, which decodes these records 3 to 4 times and compresses them 6
//! times as fast; without it, `ruzstd`, which is pure Rust. Tests build both and compare them.
//!
//! Recordings have level 3 instead of perf's 1: records of a few numbers become 12 % smaller for the same CPU time and
//! are read 11 % faster. With strings, copies of the stack or small flushes it is no worse.

mod error;
#[cfg(feature = "zstd")]
mod native;
#[cfg(any(test, not(feature = "zstd")))]
mod pure;
mod stored;
#[cfg(test)]
mod tests;

pub use error::CodecError;
#[cfg(feature = "zstd")]
pub(crate) use native::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};
#[cfg(not(feature = "zstd"))]
pub(crate) use pure::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};
pub(crate) use stored::store;

//! zstd: the one place that knows which implementation is used.
//!
//! With the feature `zstd` (the default) it is the C library, which decodes these records 3 to 4 times and compresses them 6
//! times as fast; without it, `ruzstd`, which is Rust throughout. In tests both are there, to be compared.

#[cfg(feature = "zstd")]
mod native;
#[cfg(any(test, not(feature = "zstd")))]
mod pure;
#[cfg(test)]
mod tests;

#[cfg(feature = "zstd")]
pub(crate) use native::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};
#[cfg(not(feature = "zstd"))]
pub(crate) use pure::{
    FrameCompressor, FrameDecompressor, StreamDecompressor, compress, decompress,
};

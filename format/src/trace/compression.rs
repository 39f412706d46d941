//! Compression of chunks.

/// Compression of the chunks of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression: plain records.
    None,
    /// zstd at this level (1 to 22).
    Zstd(i32),
}

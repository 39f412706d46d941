//! How chunks are compressed.

/// Whether and how chunks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain records.
    None,
    /// zstd at this level (1 to 22).
    Zstd(i32),
}

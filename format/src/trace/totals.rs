//! Totals of a written trace.

/// Totals of a written trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of samples.
    pub samples: u64,
    /// Length of the records before compression, bytes.
    pub raw_bytes: u64,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

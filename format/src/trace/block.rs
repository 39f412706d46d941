//! Blocks: the parts of a trace that can be read independently.

use super::time_range::TimeRange;

/// How the records of a [`Block`] are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// A chunk: records compressed independently of others.
    Chunk,
    /// Uncompressed records.
    Plain,
    /// A piece of the compressed stream of `perf record -z`, which goes through the whole file. A
    /// [`BlockReader`](super::BlockReader) decompresses the stream from its start unless blocks are read in order.
    Stream,
}

/// A run of whole records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// How the records are stored.
    pub kind: BlockKind,
    /// File offset.
    pub offset: u64,
    /// Length in the file, bytes.
    pub len: u64,
    /// Length of the decompressed records, bytes; 0 if not known without reading.
    pub raw_len: u32,
    /// Number of samples; `None` if not known without reading.
    pub samples: Option<u32>,
    /// Earliest and latest non-zero time of the records, ns; `None` if not known without reading, or if no record has a time.
    pub time: Option<TimeRange>,
    /// Whether the block may have records other than samples. Blocks written by usdtrec never have both.
    pub metadata: bool,
}

impl Block {
    /// File offset after the last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

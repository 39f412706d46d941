//! Blocks: the pieces of a trace that can be read on their own.

/// How a [`Block`]'s records stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// One chunk of ours.
    Chunk,
    /// Plain records.
    Plain,
    /// Compressed records of `perf record -z`: one stream through the whole file. A
    /// [`BlockReader`](super::BlockReader) that is asked for another than the next one begins at the start again.
    Stream,
}

/// A run of whole records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// How it stands in the file.
    pub kind: BlockKind,
    /// File offset.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
    /// Bytes of records; 0 if not known without reading.
    pub raw_len: u32,
    /// Samples; `None` if not known without reading.
    pub samples: Option<u32>,
    /// Earliest and latest non-zero time of the records in it, ns; `None` if not known without reading or if there is none.
    pub time: Option<(u64, u64)>,
    /// Whether it may hold records other than samples. Ours never mix the two.
    pub metadata: bool,
}

impl Block {
    /// File offset behind its last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

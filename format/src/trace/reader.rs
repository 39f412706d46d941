//! Reading a trace.

use std::path::Path;

use super::{Loss, TraceInfo};

/// Why a file cannot be read at all. What is wrong inside a readable file is [`Damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A system call failed.
    #[error("cannot read {path}")]
    Io {
        /// File.
        path: std::path::PathBuf,
        /// Error.
        #[source]
        source: std::io::Error,
    },
    /// The file is not one that we read, or cut before its data.
    #[error("offset {offset}: expected {expected}, found {found}")]
    Format {
        /// File offset.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is.
        found: String,
    },
}

/// Something wrong in a file, which cost the records behind or in it and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File offset.
    pub offset: u64,
    /// What is wrong and what it cost, in words.
    pub message: String,
}

/// A run of whole records that can be read independently of all others: one chunk of ours, or a stretch of plain records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// File offset.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
    /// Bytes of records.
    pub raw_len: u32,
    /// Samples; `None` if not known without reading.
    pub samples: Option<u32>,
    /// Earliest and latest non-zero time of the samples in it, ns; `None` if not known without reading or if there is none.
    pub time: Option<(u64, u64)>,
    /// Whether it may hold records other than samples. Ours never mix the two.
    pub metadata: bool,
}

/// An open trace: the file mapped, its head read, its blocks known.
#[derive(Debug)]
pub struct Trace {}

/// Reads blocks, keeping the decompressor and the buffer. One a thread.
#[derive(Debug, Default)]
pub struct BlockReader {}

impl Trace {
    /// Opens a trace.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open(_path: &Path) -> Result<Self, ReadError> {
        todo!()
    }

    /// Its head.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        todo!()
    }

    /// Its blocks in file order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        todo!()
    }

    /// Exact losses, where the recorder lived to write them; `None` if it did not.
    #[must_use]
    pub fn losses(&self) -> Option<&[Loss]> {
        todo!()
    }

    /// What was found wrong while opening.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        todo!()
    }

    /// File length, bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        todo!()
    }
}

impl BlockReader {
    /// A reader without buffers yet.
    #[must_use]
    pub fn new() -> Self {
        todo!()
    }

    /// The records of a block.
    ///
    /// # Errors
    /// [`Damage`] if the block is not what its header says.
    pub fn read<'a>(&'a mut self, _trace: &'a Trace, _block: &Block) -> Result<&'a [u8], Damage> {
        todo!()
    }
}

//! Writing a trace.

use std::fs::File;

use super::{Loss, TraceInfo};

/// Whether and how chunks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain records.
    None,
    /// zstd at this level (1 to 22).
    Zstd(i32),
}

/// Why writing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A system call failed.
    #[error("cannot write at offset {offset}")]
    Io {
        /// File offset of the write.
        offset: u64,
        /// Its error.
        #[source]
        source: std::io::Error,
    },
    /// The attrs differ in what every record must share.
    #[error("{0}")]
    Layout(String),
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples.
    pub samples: u64,
    /// Bytes of records before compression.
    pub raw_bytes: u64,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

/// Writes a trace; after every [`flush`](Self::flush) the file is complete for any reader.
#[derive(Debug)]
pub struct TraceWriter {}

impl TraceWriter {
    /// Writes the head of the trace into an empty file.
    ///
    /// All attrs must sample `IDENTIFIER`, `IP`, `TID`, `TIME` and `CPU`, have `sample_id_all` set and one `read_format`.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn create(
        _file: File,
        _info: &TraceInfo,
        _compression: Compression,
    ) -> Result<Self, WriteError> {
        todo!()
    }

    /// Takes whole records, in the order of their ring.
    pub fn push(&mut self, _records: &[u8]) {
        todo!()
    }

    /// Bytes taken and not yet flushed.
    #[must_use]
    pub fn pending(&self) -> usize {
        todo!()
    }

    /// Totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        todo!()
    }

    /// Compresses and writes all that was taken, as one round, and makes the file valid up to here.
    /// To be called only between passes over all rings.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        todo!()
    }

    /// Flushes, writes the losses and the normal end of the file.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid.
    pub fn finish(self, _losses: &[Loss]) -> Result<Totals, WriteError> {
        todo!()
    }
}

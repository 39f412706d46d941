//! Bytes on their way to the end of a file.

use super::storage::Storage;
use super::write_error::WriteError;

/// Bytes after which they are written, so that a large flush needs no more memory than a small one.
const FULL: usize = 1 << 20;

/// Collects bytes that follow each other in the file and writes them in large pieces.
pub(crate) struct Sink<'a, S> {
    storage: &'a mut S,
    out: &'a mut Vec<u8>,
    /// File offset of the first byte of `out`.
    at: u64,
}

impl<'a, S: Storage> Sink<'a, S> {
    /// A sink that begins at a file offset. `out` is its memory, emptied first.
    pub(crate) fn new(storage: &'a mut S, out: &'a mut Vec<u8>, at: u64) -> Self {
        out.clear();
        Self { storage, out, at }
    }

    /// The bytes not yet written, to be appended to.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// File offset of the first byte of [`out`](Self::out).
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// File offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.at + self.out.len() as u64
    }

    /// Writes what is there.
    ///
    /// # Errors
    /// The storage's.
    pub(crate) fn drain(&mut self) -> Result<(), WriteError> {
        if !self.out.is_empty() {
            let offset = self.at;
            self.storage
                .write_at(self.out, offset)
                .map_err(|source| WriteError::Io { offset, source })?;
            self.at += self.out.len() as u64;
            self.out.clear();
        }
        Ok(())
    }

    /// Writes what is there if it is much.
    ///
    /// # Errors
    /// The storage's.
    pub(crate) fn drain_if_full(&mut self) -> Result<(), WriteError> {
        if self.out.len() >= FULL {
            self.drain()?;
        }
        Ok(())
    }
}

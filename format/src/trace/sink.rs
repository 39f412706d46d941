//! Storage that a trace is written to, and buffered appending to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::write_error::WriteError;

/// Buffered length after which the buffer is written, bytes, so that memory does not grow with a flush.
const FULL: usize = 1 << 20;

/// Length from which on bytes are written without being buffered.
const DIRECT: usize = 16 << 10;

/// Buffers consecutive bytes and writes them in large pieces.
pub(crate) struct Sink<'a, S> {
    storage: &'a mut S,
    out: &'a mut Vec<u8>,
    /// File offset of the first byte of `out`.
    at: u64,
}

impl<'a, S: Storage> Sink<'a, S> {
    /// A sink that starts at a file offset. `out` is its buffer and is cleared first.
    pub(crate) fn new(storage: &'a mut S, out: &'a mut Vec<u8>, at: u64) -> Self {
        out.clear();
        Self { storage, out, at }
    }

    /// The buffer, to append to.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// File offset of the first byte of [`out`](Self::out).
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// File offset of the next byte to append.
    pub(crate) fn position(&self) -> u64 {
        self.at + self.out.len() as u64
    }

    /// Appends bytes; many are written at once, and not copied.
    ///
    /// # Errors
    /// Errors of the storage.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if bytes.len() < DIRECT {
            self.out.extend_from_slice(bytes);
            return self.drain_if_full();
        }
        self.drain()?;
        let offset = self.at;
        self.storage
            .write_at(bytes, offset)
            .map_err(|source| WriteError::Io { offset, source })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the buffer.
    ///
    /// # Errors
    /// Errors of the storage.
    pub(crate) fn drain(&mut self) -> Result<(), WriteError> {
        if !self.out.is_empty() {
            let offset = self.at;
            self.storage
                .write_at(self.out, offset)
                .map_err(|source| WriteError::Io { offset, source })?;
            self.at += self.out.len() as u64;
            self.out.clear();
            // A whole head can be long.
            self.out.shrink_to(FULL);
        }
        Ok(())
    }

    /// Writes the buffer if it has at least [`FULL`] bytes.
    ///
    /// # Errors
    /// Errors of the storage.
    pub(crate) fn drain_if_full(&mut self) -> Result<(), WriteError> {
        if self.out.len() >= FULL {
            self.drain()?;
        }
        Ok(())
    }
}

/// The operations on a file that the writer needs. If only the first calls of any sequence are executed, the file is valid up to the last commit
/// among them.
pub trait Storage {
    /// Writes all bytes at a file offset, growing the file if needed.
    ///
    /// # Errors
    /// The error of the system call.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Truncates the file to `len` bytes.
    ///
    /// # Errors
    /// The error of the system call.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
}

impl Storage for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }
}

//! Storage that a trace is written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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

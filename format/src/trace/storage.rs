//! Where a trace is written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file as the writer needs it. The order of the calls is the order in which the trace becomes valid: whatever
/// prefix of them is carried out, the file holds everything up to the last commit.
pub trait Storage {
    /// Writes all bytes at a file offset, growing the file if needed.
    ///
    /// # Errors
    /// The system call's.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// The system call's.
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

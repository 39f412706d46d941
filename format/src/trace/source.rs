//! The file that a trace is read from.
//!
//! Positioned reads and no mapping: a mapped file that another program cuts would kill the reader with `SIGBUS`, and one
//! read for each block costs 1 to 10 % of decoding it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// An open file and how long it was when it was opened.
#[derive(Debug)]
pub(crate) struct Source {
    /// `None`: there is nothing to read.
    file: Option<File>,
    len: u64,
}

impl Source {
    /// Takes the length: what a live recorder appends later is not seen.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self {
            file: Some(file),
            len,
        })
    }

    /// Nothing at all.
    pub(crate) const fn none() -> Self {
        Self { file: None, len: 0 }
    }

    /// Takes the length again.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn look_again(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            self.len = file.metadata()?.len();
        }
        Ok(())
    }

    /// Length, bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads `len` bytes at an offset into `out`, or as many as there are.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn read(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let there = self.len.saturating_sub(offset);
        let len = usize::try_from(there).map_or(len, |there| there.min(len));
        out.resize(len, 0);
        let mut filled = 0;
        while filled < len {
            let Some(file) = &self.file else { break };
            match file.read_at(&mut out[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        out.truncate(filled);
        Ok(())
    }

    /// [`read`](Self::read) into a vector of its own.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.read(offset, len, &mut out)?;
        Ok(out)
    }
}

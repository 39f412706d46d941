//! Bytes as a file.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A file that is in no directory.
pub(crate) struct Scratch {
    file: File,
}

impl Scratch {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Self { file }
    }

    pub(crate) fn open(&self) -> File {
        self.file.try_clone().unwrap()
    }

    /// Writes after its end.
    pub(crate) fn append(&self, bytes: &[u8]) {
        let mut file = self.open();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// A path that leads to it while it lives.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

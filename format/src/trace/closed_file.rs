//! A file that is closed between reads: a trace of very many files does not hold a descriptor of each.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A regular file that was open.
#[derive(Debug)]
pub(crate) struct ClosedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl ClosedFile {
    /// The open file of this path.
    ///
    /// # Errors
    /// The error of `fstat(2)`.
    pub(crate) fn new(file: &File, path: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Opens it again.
    ///
    /// # Errors
    /// The error of `open(2)`, or that another file has the path now.
    pub(crate) fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(&self.path)?;
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) != (self.device, self.inode) {
            return Err(io::Error::other("another file has its path now"));
        }
        Ok(file)
    }
}

//! A file of a dataset.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Bytes that are written at once.
const WRITE: usize = 1 << 20;

/// A file that is open only while something is written to it: a dataset may have more files than a process may have open.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    waiting: Vec<u8>,
}

impl PartFile {
    /// Makes an empty file, and the folders that it is in.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::create_new(&path)?;
        Ok(Self {
            path,
            waiting: Vec::new(),
        })
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= WRITE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        match waiting.is_empty() {
            true => Ok(()),
            false => File::options()
                .append(true)
                .open(&self.path)?
                .write_all(&waiting),
        }
    }
}

//! The files that a trace is read from.
//!
//! Files are read with positioned reads, and not mapped: truncating a mapped file would kill the reader with `SIGBUS`. A read per block
//! takes 1 to 10 % of the time of decoding it.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::chunk::RECORD_HEADER;
use super::read_error::ReadError;
use crate::perf::record_header;

/// Open files, concatenated, with their lengths when they were opened. Most traces are one file.
#[derive(Debug, Default)]
pub(crate) struct TraceFiles {
    parts: Vec<Part>,
    len: u64,
}

/// One of the files.
#[derive(Debug)]
struct Part {
    file: PartFile,
    /// Offset of its first byte in the concatenation.
    start: u64,
    len: u64,
}

/// A file that is read.
#[derive(Debug)]
enum PartFile {
    Open(File),
    Closed(ClosedFile),
}

impl PartFile {
    fn len(&self) -> io::Result<u64> {
        match self {
            Self::Open(file) => Ok(file.metadata()?.len()),
            Self::Closed(file) => Ok(file.open()?.metadata()?.len()),
        }
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Open(file) => file.read_at(out, offset),
            Self::Closed(file) => file.open()?.read_at(out, offset),
        }
    }
}

impl TraceFiles {
    /// Takes the current lengths. Data that a recorder appends later are not read.
    ///
    /// # Errors
    /// [`ReadError::Read`], if `fstat(2)` fails.
    pub(crate) fn new(files: Vec<File>) -> Result<Self, ReadError> {
        let part = |file| Part {
            file: PartFile::Open(file),
            start: 0,
            len: 0,
        };
        let mut source = Self {
            parts: files.into_iter().map(part).collect(),
            len: 0,
        };
        source.update_len()?;
        Ok(source)
    }

    /// Takes the current lengths again.
    ///
    /// # Errors
    /// [`ReadError::Read`], if `fstat(2)` fails.
    pub(crate) fn update_len(&mut self) -> Result<(), ReadError> {
        self.len = 0;
        for part in &mut self.parts {
            part.start = self.len;
            part.len = part.file.len().map_err(ReadError::at(part.start))?;
            self.len = self.len.saturating_add(part.len);
        }
        Ok(())
    }

    /// Appends other files, and gives the offset of the first byte of them.
    pub(crate) fn append(&mut self, other: Self) -> u64 {
        let base = self.len;
        self.parts.extend(other.parts.into_iter().map(|part| Part {
            start: part.start.saturating_add(base),
            ..part
        }));
        self.len = self.len.saturating_add(other.len);
        base
    }

    /// Closes the file between reads, if it is a single one; `path` is its path.
    ///
    /// # Errors
    /// The error of `fstat(2)`.
    pub(crate) fn close(&mut self, path: &Path) -> io::Result<()> {
        if let [part] = &mut *self.parts
            && let PartFile::Open(file) = &part.file
        {
            part.file = PartFile::Closed(ClosedFile::new(file, path)?);
        }
        Ok(())
    }

    /// Ranges of the files after the first one.
    pub(crate) fn others(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let others = self.parts.iter().skip(1);
        let ranges: Vec<_> = others
            .map(|part| part.start..part.start + part.len)
            .collect();
        ranges.into_iter()
    }

    /// Index of the file that contains an offset.
    pub(crate) fn part_of(&self, offset: u64) -> usize {
        self.parts
            .partition_point(|part| part.start <= offset)
            .saturating_sub(1)
    }

    /// Total length, bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Replaces the content of `out` by up to `len` bytes at an offset; fewer at the end.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn read(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let there = self.len.saturating_sub(offset);
        let len = usize::try_from(there).map_or(len, |there| there.min(len));
        out.resize(len, 0);
        let mut filled = 0;
        while filled < len {
            let at = offset + filled as u64;
            let Some(part) = self.parts.get(self.part_of(at)) else {
                break;
            };
            let within = at - part.start;
            let room = usize::try_from(part.len.saturating_sub(within)).unwrap_or(usize::MAX);
            let end = filled.saturating_add(room).min(len);
            match part.file.read_at(&mut out[filled..end], within) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::at(at)(error)),
            }
        }
        out.truncate(filled);
        Ok(())
    }

    /// Reads the record at an offset, whose header says how long it is.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn read_record(&self, offset: u64, out: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read(offset, RECORD_HEADER, out)?;
        let size = record_header(out).map_or(0, |(.., size)| size);
        self.read(offset, size, out)
    }

    /// As [`read`](Self::read), into a new vector.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        self.read(offset, len, &mut out)?;
        Ok(out)
    }
}

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

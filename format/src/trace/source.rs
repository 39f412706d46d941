//! The file that a trace is read from.
//!
//! Positioned reads and no mapping: a mapped file that another program cuts would kill the reader with `SIGBUS`, and one
//! read for each block costs 1 to 10 % of decoding it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Open files, one after the other as if they were one, and how long they were when they were opened. Most traces have one.
#[derive(Debug)]
pub(crate) struct Source {
    parts: Vec<Part>,
    len: u64,
}

/// One of the files.
#[derive(Debug)]
struct Part {
    file: File,
    /// Where it begins.
    start: u64,
    len: u64,
}

impl Source {
    /// Takes the length: what a live recorder appends later is not seen.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn new(files: Vec<File>) -> io::Result<Self> {
        let part = |file| Part {
            file,
            start: 0,
            len: 0,
        };
        let mut source = Self {
            parts: files.into_iter().map(part).collect(),
            len: 0,
        };
        source.look_again()?;
        Ok(source)
    }

    /// Nothing at all.
    pub(crate) const fn none() -> Self {
        Self {
            parts: Vec::new(),
            len: 0,
        }
    }

    /// Takes the length again.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn look_again(&mut self) -> io::Result<()> {
        self.len = 0;
        for part in &mut self.parts {
            part.start = self.len;
            part.len = part.file.metadata()?.len();
            self.len = self.len.saturating_add(part.len);
        }
        Ok(())
    }

    /// Where the files after the first begin and end.
    pub(crate) fn others(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let others = self.parts.iter().skip(1);
        let ranges: Vec<_> = others
            .map(|part| part.start..part.start + part.len)
            .collect();
        ranges.into_iter()
    }

    /// Which of the files an offset is in.
    pub(crate) fn part_of(&self, offset: u64) -> usize {
        self.parts
            .partition_point(|part| part.start <= offset)
            .saturating_sub(1)
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

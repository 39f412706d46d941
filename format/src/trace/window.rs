//! Looking at a file in order, a piece at a time.

use std::io;

use super::source::Source;

/// Bytes read at once when the walk is dense.
const DENSE: usize = 1 << 20;
/// Bytes read at once when the walk jumps from chunk to chunk.
const SPARSE: usize = 4096;

/// A piece of a file around where a walk is.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a Source,
    bytes: Vec<u8>,
    /// File offset of the first of `bytes`.
    at: u64,
}

impl<'a> Window<'a> {
    /// A window that has read nothing.
    pub(crate) fn new(source: &'a Source) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            at: 0,
        }
    }

    /// Up to `len` bytes at an offset; fewer only at the file's end. Reads a large piece if the offset follows closely on
    /// the last one and a small one if it does not.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn peek(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        if !self.holds(offset, len) {
            let near = offset >= self.at && offset - self.at <= (self.bytes.len() + SPARSE) as u64;
            let piece = if near { DENSE } else { SPARSE };
            self.source.read(offset, piece.max(len), &mut self.bytes)?;
            self.at = offset;
        }
        let start = (offset - self.at) as usize;
        let end = (start + len).min(self.bytes.len());
        Ok(&self.bytes[start..end])
    }

    fn holds(&self, offset: u64, len: usize) -> bool {
        let end = self.at + self.bytes.len() as u64;
        let at_end_of_file = end >= self.source.len() && !self.bytes.is_empty();
        self.at <= offset
            && offset <= end
            && (offset.saturating_add(len as u64) <= end || at_end_of_file)
    }
}

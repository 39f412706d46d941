//! Reads a file sequentially in pieces.

use super::read_error::ReadError;
use super::trace_files::TraceFiles;

/// Size of a read when the scan is sequential, bytes.
const DENSE: usize = 1 << 20;
/// Size of a read when the scan skips from chunk to chunk, or over samples with copies of stacks, bytes.
const SPARSE: usize = 512;
/// Largest distance of two records after which a scan is sequential, bytes.
const NEAR: u64 = 8 << 10;

/// The piece of a file at the position of a scan.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a TraceFiles,
    bytes: Vec<u8>,
    /// File offset of the first of `bytes`.
    at: u64,
    /// File offset of what was requested last.
    last: u64,
}

impl<'a> Window<'a> {
    /// An empty window.
    pub(crate) fn new(source: &'a TraceFiles) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            at: 0,
            last: 0,
        }
    }

    /// Up to `len` bytes at an offset; fewer only at the end of the file. Reads a large piece if the offset is close to the previous offset,
    /// else a small one.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn peek(&mut self, offset: u64, len: usize) -> Result<&[u8], ReadError> {
        if !self.holds(offset, len) {
            let near = offset >= self.last && offset - self.last <= NEAR;
            let piece = if near { DENSE } else { SPARSE };
            self.source.read(offset, piece.max(len), &mut self.bytes)?;
            self.at = offset;
        }
        self.last = offset;
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

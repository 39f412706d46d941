//! Records on their way to where a trace is written: buffered, compressed in parts by several threads, and taken in their order.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;

use super::buffer::RecordBuffer;
use super::codec::Compression;
use super::ingest::Ingest;
use super::pack_pool::PackPool;
use super::part::Part;
use super::write_error::WriteError;
use crate::perf::SampleType;

/// Number of parts in hand for each helper thread.
const PARTS: usize = 4;
/// Number of parts whose buffers are kept when all parts of a round are reused.
const SPARE: usize = 16;

/// Records that are not written yet.
pub(crate) struct PartQueue {
    ingest: Ingest,
    pub(crate) pool: PackPool,
    /// Records that were flushed in parts.
    pub(crate) parts: VecDeque<Part>,
    /// Empty buffers that keep their memory, for samples and for metadata.
    spare: Vec<[RecordBuffer; 2]>,
}

/// A part that can be written.
pub(crate) struct NextPart {
    pub(crate) part: Part,
    /// Whether it is the last one of a pass over all rings.
    pub(crate) ends_round: bool,
}

impl PartQueue {
    /// `id_type` is the layout of the sample id of all records; it must include `TIME`.
    ///
    /// # Errors
    /// The error of zstd.
    pub(crate) fn new(id_type: SampleType, compression: Compression) -> io::Result<Self> {
        Ok(Self {
            ingest: Ingest::new(id_type),
            pool: PackPool::new(compression)?,
            parts: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// Allows `threads` threads to compress, the caller's among them.
    pub(crate) fn set_threads(&mut self, threads: NonZeroUsize, at_once: bool) {
        self.pool.set_threads(threads, at_once);
    }

    /// Buffers whole records.
    pub(crate) fn push(&mut self, records: &[u8]) {
        self.ingest.push(records);
    }

    /// Length of the records that are not written yet, bytes.
    pub(crate) fn pending(&self) -> usize {
        self.unflushed() + self.parts.iter().map(Part::len).sum::<usize>()
    }

    /// Length of the records that are in no part yet, bytes.
    pub(crate) fn unflushed(&self) -> usize {
        self.ingest.pending()
    }

    /// Whether there are parts that are not written yet.
    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Makes a part of what is buffered, which may be nothing.
    pub(crate) fn begin_part(&mut self, ends_round: bool) {
        let empty = self.spare.pop().unwrap_or_default();
        let part = Part::take(&mut self.ingest, empty, &mut self.pool, ends_round);
        self.parts.push_back(part);
    }

    /// The next part to write: with `ends_round` all of them one after the other, else while they are compressed already or too many wait.
    pub(crate) fn next(&mut self, ends_round: bool) -> Option<NextPart> {
        let part = self.parts.pop_front()?;
        let may_wait = !ends_round && self.parts.len() < PARTS * self.pool.most_helpers();
        if may_wait && !part.is_done(&self.pool) {
            self.parts.push_front(part);
            return None;
        }
        Some(NextPart {
            part,
            ends_round: ends_round && self.parts.is_empty(),
        })
    }

    /// Has a part be the first one again: it could not be written.
    pub(crate) fn put_back(&mut self, part: Part) {
        self.parts.push_front(part);
    }

    /// Uses the memory of a part again, which was written.
    pub(crate) fn reuse(&mut self, part: Part) {
        self.spare.push(part.into_buffers());
    }

    /// Uses the memory of all parts again, which were written.
    pub(crate) fn reuse_all(&mut self) {
        let written = self.parts.drain(..).map(Part::into_buffers);
        self.spare.extend(written);
        self.spare.truncate(SPARE);
    }

    /// The error of records that were refused since the last call.
    ///
    /// # Errors
    /// [`WriteError::Record`].
    pub(crate) fn check_refusal(&mut self) -> Result<(), WriteError> {
        match self.ingest.take_refusal() {
            Some(what) => Err(WriteError::Record(what)),
            None => Ok(()),
        }
    }
}

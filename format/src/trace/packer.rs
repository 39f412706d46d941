//! Splits buffered records into chunks and compresses them.

use std::ops::Range;

use super::buffer::RecordBuffer;
use super::chunk::{FRAME_AT, MAX_FRAME, put_chunk};
use super::codec::{Compression, FrameCompressor};
use super::index::IndexEntry;
use super::sink::{Sink, Storage};
use super::write_error::WriteError;

/// Target length of the records in a chunk, bytes. Longer chunks compress little better, and parallel readers need many chunks.
pub(crate) const TARGET: usize = 256 << 10;
/// Target length of a frame, bytes; leaves a margin for records that compress worse.
const EXPECTED_FRAME: usize = MAX_FRAME / 8 * 7;

/// Compresses runs of records, reusing compressor and memory.
pub(crate) struct Packer {
    compressor: Option<FrameCompressor>,
    /// Length of records to try next, bytes, from the ratio of the last chunk.
    target: usize,
    frame: Vec<u8>,
}

/// Consecutive chunks in memory.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The chunks as they are in the file.
    pub(crate) bytes: Vec<u8>,
    /// Index entries of the chunks, whose offsets are in `bytes`.
    pub(crate) entries: Vec<IndexEntry>,
}

impl Packer {
    /// A packer with a compression.
    ///
    /// # Errors
    /// The error of zstd.
    pub(crate) fn new(compression: Compression) -> std::io::Result<Self> {
        let compressor = match compression {
            Compression::None => None,
            Compression::Zstd(level) => Some(FrameCompressor::new(level)?),
        };
        Ok(Self {
            compressor,
            target: TARGET,
            frame: Vec::with_capacity(MAX_FRAME),
        })
    }

    /// Writes all records of a sealed buffer. `placed` is called with the index entry of each chunk.
    ///
    /// # Errors
    /// Errors of the sink.
    pub(crate) fn pack<S: Storage>(
        &mut self,
        buffer: &RecordBuffer,
        metadata: bool,
        sink: &mut Sink<'_, S>,
        mut placed: impl FnMut(IndexEntry),
    ) -> Result<(), WriteError> {
        let mut rest = 0..buffer.segments();
        while !rest.is_empty() {
            let offset = sink.position();
            placed(self.put(buffer, &mut rest, metadata, offset, sink.out()));
            sink.drain_if_full()?;
        }
        Ok(())
    }

    /// Compresses segments of samples.
    pub(crate) fn chunks(&mut self, buffer: &RecordBuffer, mut segments: Range<usize>) -> Chunks {
        let mut chunks = Chunks::default();
        while !segments.is_empty() {
            let offset = chunks.bytes.len() as u64;
            let entry = self.put(buffer, &mut segments, false, offset, &mut chunks.bytes);
            chunks.entries.push(entry);
        }
        chunks
    }

    /// Appends the chunk of the first segments of `rest`, and removes these from it. `offset` is that of the chunk.
    fn put(
        &mut self,
        buffer: &RecordBuffer,
        rest: &mut Range<usize>,
        metadata: bool,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> IndexEntry {
        let run = self.compress(buffer, rest.clone());
        let (records, counts) = buffer.records(run.clone());
        let start = out.len();
        if self.frame.is_empty() {
            out.extend_from_slice(records);
        } else {
            put_chunk(metadata, records.len(), &counts, &self.frame, out);
        }
        rest.start = run.end;
        IndexEntry {
            offset,
            len: (out.len() - start) as u32,
            raw_len: records.len() as u32,
            counts,
            metadata,
        }
    }

    /// Compresses as many of the first segments as fit into a chunk. The frame is empty if plain records are shorter.
    fn compress(&mut self, buffer: &RecordBuffer, segments: Range<usize>) -> Range<usize> {
        self.frame.clear();
        let Some(compressor) = &mut self.compressor else {
            return buffer.run(segments, TARGET);
        };
        loop {
            let run = buffer.run(segments.clone(), self.target);
            let (records, _) = buffer.records(run.clone());
            match compressor.compress(records, &mut self.frame) {
                Some(len) => {
                    self.target = (records.len() * EXPECTED_FRAME / len.max(1)).min(TARGET);
                    if len + FRAME_AT >= records.len() {
                        self.frame.clear();
                    }
                    return run;
                }
                None if self.target > EXPECTED_FRAME && run.len() > 1 => {
                    self.target = EXPECTED_FRAME;
                }
                None => {
                    self.frame.clear();
                    return run;
                }
            }
        }
    }
}

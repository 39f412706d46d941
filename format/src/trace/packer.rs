//! Splits buffered records into chunks and compresses them.

use std::ops::Range;

use super::buffer::RecordBuffer;
use super::chunk::{FRAME_AT, MAX_FRAME, put_chunk};
use super::codec::FrameCompressor;
use super::compression::Compression;
use super::index::IndexEntry;
use super::sink::Sink;
use super::storage::Storage;
use super::write_error::WriteError;

/// Target length of the records in a chunk, bytes. Longer chunks compress little better, and parallel readers need many chunks.
const TARGET: usize = 256 << 10;
/// Target length of a frame, bytes; leaves a margin for records that compress worse.
const EXPECTED_FRAME: usize = MAX_FRAME / 8 * 7;

/// Compresses runs of records, reusing compressor and memory.
pub(crate) struct Packer {
    compressor: Option<FrameCompressor>,
    /// Length of records to try next, bytes, from the ratio of the last chunk.
    target: usize,
    frame: Vec<u8>,
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
        let mut first = 0;
        while first < buffer.segments() {
            let run = self.compress(buffer, first);
            let (records, counts) = buffer.records(run.clone());
            let offset = sink.position();
            if self.frame.is_empty() {
                sink.out().extend_from_slice(records);
            } else {
                put_chunk(metadata, records.len(), &counts, &self.frame, sink.out());
            }
            placed(IndexEntry {
                offset,
                len: (sink.position() - offset) as u32,
                raw_len: records.len() as u32,
                counts,
                metadata,
            });
            sink.drain_if_full()?;
            first = run.end;
        }
        Ok(())
    }

    /// Compresses as many segments from `first` on as fit into a chunk. The frame is empty if plain records are shorter.
    fn compress(&mut self, buffer: &RecordBuffer, first: usize) -> Range<usize> {
        self.frame.clear();
        let Some(compressor) = &mut self.compressor else {
            return buffer.run(first, TARGET);
        };
        loop {
            let run = buffer.run(first, self.target);
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

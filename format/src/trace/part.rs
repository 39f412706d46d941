//! Records between their flush and the file.

use std::collections::VecDeque;
use std::sync::Arc;

use super::buffer::RecordBuffer;
use super::index::IndexEntry;
use super::ingest::Ingest;
use super::pack_pool::{PackPool, Run, Submitted};
use super::packer::{Chunks, TARGET};
use super::sink::{Sink, Storage};
use super::write_error::WriteError;

/// Samples that are compressed by a pool.
#[derive(Debug)]
struct PackedSamples {
    buffer: Arc<RecordBuffer>,
    /// The runs that were not taken from the pool yet.
    runs: VecDeque<Submitted>,
    chunks: Vec<Chunks>,
}

impl PackedSamples {
    /// Submits a sealed buffer.
    fn submit(buffer: RecordBuffer, pool: &mut PackPool) -> Self {
        let buffer = Arc::new(buffer);
        let segments = buffer.segments();
        let mut first = 0;
        let runs = std::iter::from_fn(|| {
            (first < segments).then(|| {
                let run = buffer.run(first..segments, TARGET);
                first = run.end;
                Run {
                    buffer: Arc::clone(&buffer),
                    segments: run,
                }
            })
        });
        let runs = pool.submit(runs);
        Self {
            buffer,
            runs,
            chunks: Vec::new(),
        }
    }

    /// Length of the records, bytes.
    fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether all are compressed.
    fn is_done(&self, pool: &PackPool) -> bool {
        self.runs.iter().all(|run| pool.is_done(run))
    }

    /// Waits until all are compressed.
    fn complete(&mut self, pool: &mut PackPool) {
        while let Some(run) = self.runs.pop_front() {
            self.chunks.push(pool.take(&run));
        }
    }

    /// Writes the chunks after [`complete`](Self::complete). `placed` is called with the index entry of each.
    ///
    /// # Errors
    /// Errors of the sink.
    fn write<S: Storage>(
        &self,
        sink: &mut Sink<'_, S>,
        mut placed: impl FnMut(IndexEntry),
    ) -> Result<(), WriteError> {
        for chunks in &self.chunks {
            let start = sink.position();
            sink.out().extend_from_slice(&chunks.bytes);
            for entry in &chunks.entries {
                placed(IndexEntry {
                    offset: start + entry.offset,
                    ..*entry
                });
            }
            sink.drain_if_full()?;
        }
        Ok(())
    }

    /// The buffer, empty, if nobody has it any more.
    fn into_buffer(self) -> Option<RecordBuffer> {
        drop(self.runs);
        let mut buffer = Arc::into_inner(self.buffer)?;
        buffer.clear();
        Some(buffer)
    }
}

/// The samples of a part.
#[derive(Debug)]
enum PartSamples {
    /// Uncompressed, sealed.
    Buffered(RecordBuffer),
    /// Compressed by a pool.
    Packed(PackedSamples),
}

/// What a flush took, which the file does not have yet.
#[derive(Debug)]
pub(crate) struct Part {
    /// All other records, sealed.
    metadata: RecordBuffer,
    samples: PartSamples,
}

impl Part {
    /// Takes all records of `ingest`, whose buffers `empty` replaces. If `is_last`, few samples are compressed by the caller, sooner than a
    /// helper wakes.
    pub(crate) fn take(
        ingest: &mut Ingest,
        empty: [RecordBuffer; 2],
        pool: &mut PackPool,
        is_last: bool,
    ) -> Self {
        let [samples, metadata] = ingest.take(empty);
        let alone = pool.most_helpers() == 0 || is_last && samples.len() <= TARGET;
        let samples = if alone {
            PartSamples::Buffered(samples)
        } else {
            PartSamples::Packed(PackedSamples::submit(samples, pool))
        };
        Self { metadata, samples }
    }

    /// Length of the records, bytes.
    pub(crate) fn len(&self) -> usize {
        let samples = match &self.samples {
            PartSamples::Buffered(buffer) => buffer.len(),
            PartSamples::Packed(packed) => packed.len(),
        };
        self.metadata.len() + samples
    }

    /// Whether it can be written without waiting for the pool.
    pub(crate) fn is_done(&self, pool: &PackPool) -> bool {
        match &self.samples {
            PartSamples::Buffered(_) => true,
            PartSamples::Packed(packed) => packed.is_done(pool),
        }
    }

    /// Writes all records but samples. `placed` is called with the index entry of each chunk or run of plain records.
    ///
    /// # Errors
    /// Errors of the sink.
    pub(crate) fn write_metadata<S: Storage>(
        &self,
        pool: &mut PackPool,
        sink: &mut Sink<'_, S>,
        placed: impl FnMut(IndexEntry),
    ) -> Result<(), WriteError> {
        pool.packer.pack(&self.metadata, true, sink, placed)
    }

    /// Writes the samples, as [`write_metadata`](Self::write_metadata) does.
    ///
    /// # Errors
    /// Errors of the sink, after which they can be written again.
    pub(crate) fn write_samples<S: Storage>(
        &mut self,
        pool: &mut PackPool,
        sink: &mut Sink<'_, S>,
        placed: impl FnMut(IndexEntry),
    ) -> Result<(), WriteError> {
        match &mut self.samples {
            PartSamples::Buffered(buffer) => pool.packer.pack(buffer, false, sink, placed),
            PartSamples::Packed(packed) => {
                packed.complete(pool);
                packed.write(sink, placed)
            }
        }
    }

    /// All records but samples.
    pub(crate) fn metadata(&self) -> &[u8] {
        self.metadata.bytes()
    }

    /// Its buffers, empty: samples, and all other records.
    pub(crate) fn into_buffers(mut self) -> [RecordBuffer; 2] {
        let samples = match self.samples {
            PartSamples::Buffered(mut buffer) => {
                buffer.clear();
                buffer
            }
            PartSamples::Packed(packed) => packed.into_buffer().unwrap_or_default(),
        };
        self.metadata.clear();
        [samples, self.metadata]
    }
}

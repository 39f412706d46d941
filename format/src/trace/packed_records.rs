//! Records that are packed in memory as they will be in a trace, for recordings of which only the last seconds are kept.

use std::io;
use std::mem::size_of;
use std::num::NonZeroUsize;

use super::chunk::{ChunkHeader, FRAME_AT};
use super::codec::{Compression, FrameDecompressor};
use super::index::IndexEntry;
use super::part_queue::PartQueue;
use super::record_counts::RecordCounts;
use super::sink::{Sink, Storage};
use super::time_range::TimeRange;
use super::write_error::WriteError;
use crate::perf::SampleType;

/// Packs records in memory, as a [`TraceWriter`](super::TraceWriter) does in a file.
pub struct RecordPacker {
    queue: PartQueue,
    /// Buffer of the sinks.
    out: Vec<u8>,
}

/// Records of one flush.
#[derive(Debug)]
pub struct PackedPart {
    /// All records but samples; `None` if there are none.
    pub metadata: Option<PackedRecords>,
    /// The samples; `None` if there are none.
    pub samples: Option<PackedRecords>,
    /// Whether a pass over all rings ends with them.
    pub ends_round: bool,
}

/// Packed records: consecutive chunks and runs of plain records, either of samples or of others.
#[derive(Debug)]
pub struct PackedRecords {
    bytes: Box<[u8]>,
    /// The offsets are in `bytes`.
    entries: Box<[IndexEntry]>,
    counts: RecordCounts,
}

/// Reads packed records, reusing memory.
#[derive(Default)]
pub struct PackedReader {
    frames: FrameDecompressor,
    records: Vec<u8>,
}

impl RecordPacker {
    /// `id_type` is [`Attr::id_type`](crate::perf::Attr::id_type) of all events; it must include `TIME`.
    ///
    /// # Errors
    /// The error of zstd.
    pub fn new(id_type: SampleType, compression: Compression) -> io::Result<Self> {
        Ok(Self {
            queue: PartQueue::new(id_type, compression)?,
            out: Vec::new(),
        })
    }

    /// As [`TraceWriter::set_threads`](super::TraceWriter::set_threads).
    pub fn set_threads(&mut self, threads: NonZeroUsize, at_once: bool) {
        self.queue.set_threads(threads, at_once);
    }

    /// Buffers whole records, in the order of their ring.
    pub fn push(&mut self, records: &[u8]) {
        self.queue.push(records);
    }

    /// Length of the records that are not packed yet, bytes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// Length of the records that were pushed since the last call of [`pack`](Self::pack), bytes.
    #[must_use]
    pub fn unflushed(&self) -> usize {
        self.queue.unflushed()
    }

    /// Whether records are being packed by other threads.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.queue.has_parts()
    }

    /// Packs what was pushed, and passes it to `packed`. Without `ends_round`, which is for use within a pass over all rings, what other threads
    /// are packing still is passed on by a later call.
    ///
    /// # Errors
    /// [`WriteError::Record`] if bytes were pushed that are no records; all others are packed.
    pub fn pack(
        &mut self,
        ends_round: bool,
        mut packed: impl FnMut(PackedPart),
    ) -> Result<(), WriteError> {
        if self.queue.unflushed() != 0 {
            self.queue.begin_part(ends_round);
        }
        while let Some(next) = self.queue.next(ends_round) {
            let mut part = next.part;
            let pool = &mut self.queue.pool;
            let metadata = PackedRecords::write(&mut self.out, |sink, placed| {
                part.write_metadata(pool, sink, placed)
            })?;
            let samples = PackedRecords::write(&mut self.out, |sink, placed| {
                part.write_samples(pool, sink, placed)
            })?;
            self.queue.reuse(part);
            packed(PackedPart {
                metadata,
                samples,
                ends_round: next.ends_round,
            });
        }
        self.queue.check_refusal()
    }
}

impl PackedRecords {
    /// What `write` writes; `None` if it is nothing.
    fn write(
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Sink<'_, Memory>, &mut dyn FnMut(IndexEntry)) -> Result<(), WriteError>,
    ) -> Result<Option<Self>, WriteError> {
        let mut memory = Memory::default();
        let mut entries = Vec::new();
        let mut counts = RecordCounts::default();
        let mut sink = Sink::new(&mut memory, out, 0);
        write(&mut sink, &mut |entry| {
            counts.add(&entry.counts);
            entries.push(entry);
        })?;
        sink.drain()?;
        Ok((!entries.is_empty()).then(|| Self {
            bytes: memory.0.into_boxed_slice(),
            entries: entries.into_boxed_slice(),
            counts,
        }))
    }

    /// Memory that they take, bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.entries.len() * size_of::<IndexEntry>()
    }

    /// The earliest and the latest time of the records, ns of the trace's clock; `None` if no record has a time.
    #[must_use]
    pub fn time(&self) -> Option<TimeRange> {
        self.counts.time()
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let samples = self.entries.iter().map(|entry| entry.counts.samples);
        samples.map(u64::from).sum()
    }

    /// Length before compression, bytes.
    #[must_use]
    pub fn raw_len(&self) -> u64 {
        let lens = self.entries.iter().map(|entry| entry.raw_len);
        lens.map(u64::from).sum()
    }

    /// Passes the records to `each`, in runs of whole ones.
    pub fn read(&self, reader: &mut PackedReader, mut each: impl FnMut(&[u8])) {
        for entry in &self.entries {
            let start = entry.offset as usize;
            let stored = self.bytes.get(start..start + entry.len as usize);
            let stored = stored.unwrap_or_default();
            // A chunk is shorter than its records.
            if entry.len == entry.raw_len {
                each(stored);
                continue;
            }
            let header = stored.get(..FRAME_AT).and_then(ChunkHeader::parse);
            let frame = header.and_then(|header| header.frame(stored));
            let read = frame.is_some_and(|frame| {
                let len = entry.raw_len as usize;
                let PackedReader { frames, records } = &mut *reader;
                frames.decompress(frame, len, records).is_ok()
            });
            if read {
                each(&reader.records);
            }
        }
    }

    /// The records as they are in a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The index entries, in a file where [`bytes`](Self::bytes) begin at an offset.
    pub(crate) fn entries_at(&self, offset: u64) -> impl Iterator<Item = IndexEntry> {
        self.entries.iter().map(move |entry| IndexEntry {
            offset: offset + entry.offset,
            ..*entry
        })
    }
}

impl std::fmt::Debug for RecordPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordPacker")
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PackedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedReader").finish_non_exhaustive()
    }
}

/// Memory that is written front to back.
#[derive(Debug, Default)]
struct Memory(Vec<u8>);

impl Storage for Memory {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.truncate(offset as usize);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len as usize);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Comm, RawRecord, RecordType, SampleId};
    use crate::trace::{BlockReader, PackedPiece, Trace, TraceInfo, TraceWriter};

    const ID_TYPE: SampleType = SampleType(
        SampleType::IDENTIFIER.0
            | SampleType::IP.0
            | SampleType::TID.0
            | SampleType::TIME.0
            | SampleType::CPU.0,
    );

    fn info() -> TraceInfo {
        let attr = crate::perf::Attr {
            kind: 8,
            sample_type: ID_TYPE,
            flags: crate::perf::Attr::SAMPLE_ID_ALL,
            ..crate::perf::Attr::default()
        };
        TraceInfo {
            events: vec![crate::perf::EventAttr {
                attr,
                name: "sdt_app:start".to_owned(),
                ids: vec![7],
            }],
            ..TraceInfo::default()
        }
    }

    fn sample(time: u64) -> Vec<u8> {
        let words = [7, 0x1000, 3 | 3 << 32, time, 0];
        let body: Vec<u8> = words
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        let record = RawRecord {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: &body,
            offset: 0,
        };
        let mut out = Vec::new();
        record.put(&mut out);
        out
    }

    fn comm(time: u64) -> Vec<u8> {
        let id = SampleId {
            time,
            ..SampleId::default()
        };
        let mut out = Vec::new();
        Comm {
            pid: 3,
            tid: 3,
            exec: false,
            name: b"app",
            id,
        }
        .encode(info().events[0].attr.id_type(), &mut out);
        out
    }

    fn packed(compression: Compression) -> Vec<PackedPart> {
        let id_type = info().events[0].attr.id_type();
        let mut packer = RecordPacker::new(id_type, compression).expect("zstd");
        let mut parts = Vec::new();
        for round in 0..3_u64 {
            packer.push(&comm(round * 1000 + 1));
            for time in 0..500 {
                packer.push(&sample(round * 1000 + time + 1));
            }
            packer.pack(true, |part| parts.push(part)).expect("records");
        }
        parts
    }

    /// What a trace has of packed records is what was packed.
    #[test]
    fn packed_records_are_written_as_they_were_pushed() {
        for compression in [Compression::None, Compression::Zstd(3)] {
            let parts = packed(compression);
            assert_eq!(parts.len(), 3);
            let file = tempfile::NamedTempFile::new().expect("a file");
            let handle = file.reopen().expect("a handle");
            let mut writer = TraceWriter::create(handle, &info(), compression).expect("a head");
            writer.push(&comm(0));
            let pieces = parts[1..].iter().flat_map(|part| {
                let records = part.metadata.iter().chain(&part.samples);
                records.map(|records| PackedPiece {
                    records,
                    ends_round: part.ends_round,
                })
            });
            writer.write_packed(pieces).expect("room");
            writer.finish(&[]).expect("room");
            let trace = Trace::open(file.path()).expect("a trace");
            assert!(trace.damage().is_empty(), "{:?}", trace.damage());
            let mut reader = BlockReader::new();
            let (mut samples, mut others) = (Vec::new(), 0);
            for block in trace.blocks() {
                let records = reader.read(&trace, block).expect("a block");
                for record in crate::perf::Records::new(records) {
                    match record.kind {
                        RecordType::SAMPLE => {
                            let time = record.body[24..32].first_chunk().copied();
                            samples.push(time.map(u64::from_le_bytes).expect("8 bytes"));
                        }
                        RecordType::COMM => others += 1,
                        _ => {}
                    }
                }
            }
            let expected = (1001..1501).chain(2001..2501);
            assert_eq!(samples, expected.collect::<Vec<u64>>());
            assert_eq!(others, 3);
        }
    }

    #[test]
    fn packed_records_are_read_back_and_know_their_times() {
        for compression in [Compression::None, Compression::Zstd(3)] {
            let parts = packed(compression);
            let samples = parts[1].samples.as_ref().expect("samples");
            assert_eq!(samples.time(), Some(TimeRange::new(1001, 1500)));
            assert_eq!(samples.samples(), 500);
            let mut bytes = Vec::new();
            samples.read(&mut PackedReader::default(), |records| {
                bytes.extend_from_slice(records);
            });
            assert_eq!(bytes.len() as u64, samples.raw_len());
            let expected: Vec<u8> = (1001..1501).flat_map(sample).collect();
            assert_eq!(bytes, expected);
        }
    }
}

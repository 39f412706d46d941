//! Batches of records on their way from the rings to the trace file. The head of each record is read once, for all stages.

use usdtrec_format::perf::{ProcessChange, RawRecord, RecordType, Records};

/// Size of a record header, bytes.
const HEADER: usize = 8;
/// Size of the fields that all samples of ours begin with: `IDENTIFIER`, `IP`, `TID`, `TIME`.
const SAMPLE_FIELDS: usize = 32;

/// Event, thread and time of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleHead {
    /// Sample id.
    pub id: u64,
    /// ns of the trace's clock.
    pub time: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

impl SampleHead {
    /// Zeros if the sample is too short.
    fn from_body(body: &[u8]) -> Self {
        let Some(fields) = body.first_chunk::<SAMPLE_FIELDS>() else {
            return Self::default();
        };
        let (words, _) = fields.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word));
        Self {
            id: word(0),
            time: word(3),
            pid: word(2) as i32,
            tid: (word(2) >> 32) as i32,
        }
    }
}

/// The head of a record.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Offset in the bytes of the batch.
    offset: usize,
    /// Bytes, the header included.
    len: u32,
    kind: RecordType,
    /// Zeros unless the record is a sample.
    sample: SampleHead,
}

impl Head {
    const fn end(&self) -> usize {
        self.offset + self.len as usize
    }

    fn record<'a>(&self, bytes: &'a [u8]) -> Record<'a> {
        Record {
            head: *self,
            bytes: bytes.get(self.offset..self.end()).unwrap_or_default(),
        }
    }
}

/// The heads of a batch; a buffer that is used again.
#[derive(Debug, Default)]
pub struct Heads(Vec<Head>);

impl Heads {
    /// Adds the heads of the records in `bytes` from `start` on. Bytes that are not a whole record are one of type 0, so that the writer
    /// gets and reports them.
    fn read(&mut self, bytes: &[u8], start: usize) {
        let rest = bytes.get(start..).unwrap_or_default();
        let mut walk = Records::new(rest);
        self.0.extend(walk.by_ref().map(|record| Head {
            offset: start + record.offset,
            len: (HEADER + record.body.len()) as u32,
            kind: record.kind,
            sample: match record.kind {
                RecordType::SAMPLE => SampleHead::from_body(record.body),
                _ => SampleHead::default(),
            },
        }));
        let left = rest.len() - walk.offset();
        if left > 0 {
            self.0.push(Head {
                offset: start + walk.offset(),
                len: left as u32,
                kind: RecordType(0),
                sample: SampleHead::default(),
            });
        }
    }
}

/// A record, borrowed from its batch.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    head: Head,
    /// The record with its header.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Its type.
    pub const fn kind(&self) -> RecordType {
        self.head.kind
    }

    /// The head of a sample; `None` of other records, and of samples that are too short.
    pub fn sample(&self) -> Option<SampleHead> {
        let is_sample = self.head.kind == RecordType::SAMPLE;
        let is_long = self.head.len as usize >= HEADER + SAMPLE_FIELDS;
        (is_sample && is_long).then_some(self.head.sample)
    }

    /// The bytes after the header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }

    /// The record for the parsers of its type.
    pub fn raw(&self) -> RawRecord<'a> {
        let misc = self.bytes.get(4..).and_then(<[u8]>::first_chunk);
        RawRecord {
            kind: self.head.kind,
            misc: misc.map_or(0, |misc| u16::from_le_bytes(*misc)),
            body: self.body(),
            offset: self.head.offset,
        }
    }
}

/// Records of a ring, or of a stage.
#[derive(Debug)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    heads: &'a mut Heads,
    /// Whether `bytes` has records that were dropped.
    has_gaps: bool,
    changes: Vec<ProcessChange<'a>>,
}

impl<'a> Batch<'a> {
    /// Reads the heads of the records in `bytes`, in place of what `heads` has.
    pub fn read(bytes: &'a [u8], heads: &'a mut Heads) -> Self {
        heads.0.clear();
        heads.read(bytes, 0);
        Self {
            bytes,
            heads,
            has_gaps: false,
            changes: Vec::new(),
        }
    }

    /// The batch with what its process records say.
    pub(super) fn with_changes(self, changes: Vec<ProcessChange<'a>>) -> Self {
        Self { changes, ..self }
    }

    /// What its process records say, in the order of time. Later stages than one that replaces records do not see it.
    pub fn changes(&self) -> &[ProcessChange<'a>] {
        &self.changes
    }

    /// The records, in their order.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> {
        let bytes = self.bytes;
        self.heads.0.iter().map(|head| head.record(bytes))
    }

    /// Drops the records that `keeps` is not true for. Returns their number.
    pub fn retain(&mut self, mut keeps: impl FnMut(Record<'a>) -> bool) -> u64 {
        let before = self.heads.0.len();
        let bytes = self.bytes;
        self.heads.0.retain(|head| keeps(head.record(bytes)));
        let dropped = before - self.heads.0.len();
        self.has_gaps |= dropped > 0;
        dropped as u64
    }

    /// The bytes of all records; records that follow each other are in one piece.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, heads) = (self.bytes, &*self.heads.0);
        let whole = (!self.has_gaps && !bytes.is_empty()).then_some(bytes);
        let heads = if self.has_gaps { heads } else { &[] };
        let runs = heads.chunk_by(|head, next| head.end() == next.offset);
        let runs = runs.filter_map(move |run| bytes.get(run.first()?.offset..run.last()?.end()));
        whole.into_iter().chain(runs)
    }
}

/// Records of a stage.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    heads: Heads,
}

impl RecordBuffer {
    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.heads.0.clear();
    }

    /// Adds a copy of a record.
    pub fn push(&mut self, record: Record<'_>) {
        self.replace(record, |bytes| bytes.extend_from_slice(record.bytes));
    }

    /// Adds the record that `write` appends in place of another, with the same type and first fields.
    pub fn replace(&mut self, record: Record<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let offset = self.bytes.len();
        write(&mut self.bytes);
        self.heads.0.push(Head {
            offset,
            len: (self.bytes.len() - offset) as u32,
            ..record.head
        });
    }

    /// Adds the records that `write` appends.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.heads.read(&self.bytes, start);
    }

    /// All records.
    pub fn batch(&mut self) -> Batch<'_> {
        Batch {
            bytes: &self.bytes,
            heads: &mut self.heads,
            has_gaps: false,
            changes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this type with these words as its body.
    fn record(kind: RecordType, words: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let record = RawRecord {
            kind,
            misc: 2,
            body: &body,
            offset: 0,
        };
        record.put(&mut out);
        out
    }

    #[test]
    fn heads_are_those_of_the_records() {
        let sample = record(RecordType::SAMPLE, &[7, 0x1000, 3 | 4 << 32, 99, 1]);
        let short = record(RecordType::SAMPLE, &[7, 0x1000, 3 | 4 << 32]);
        let comm = record(RecordType::COMM, &[5, 6]);
        let bytes = [&*sample, &short, &comm].concat();
        let mut heads = Heads::default();
        let batch = Batch::read(&bytes, &mut heads);
        let records: Vec<Record<'_>> = batch.records().collect();
        let kinds = records.iter().map(Record::kind);
        let kinds: Vec<RecordType> = kinds.collect();
        assert_eq!(
            kinds,
            [RecordType::SAMPLE, RecordType::SAMPLE, RecordType::COMM]
        );
        let head = SampleHead {
            id: 7,
            time: 99,
            pid: 3,
            tid: 4,
        };
        let samples: Vec<Option<SampleHead>> = records.iter().map(Record::sample).collect();
        assert_eq!(samples, [Some(head), None, None]);
        let raw = records[2].raw();
        assert_eq!((raw.kind, raw.misc), (RecordType::COMM, 2));
        assert_eq!(raw.body, &comm[8..]);
        assert_eq!(records[2].bytes, comm);
    }

    #[test]
    fn bytes_that_are_not_a_whole_record_are_passed_on() {
        let mut bytes = record(RecordType::COMM, &[1]);
        bytes.extend(&record(RecordType::COMM, &[1])[..9]);
        let mut heads = Heads::default();
        let mut batch = Batch::read(&bytes, &mut heads);
        assert_eq!(batch.pieces().collect::<Vec<_>>(), [&*bytes]);
        let dropped = batch.retain(|record| record.kind() == RecordType(0));
        assert_eq!(dropped, 1);
        assert_eq!(batch.pieces().collect::<Vec<_>>(), [&bytes[16..]]);
        let empty = Batch::read(&[], &mut heads);
        assert_eq!(empty.pieces().count(), 0);
    }

    #[test]
    fn a_buffer_has_the_heads_of_copied_replaced_and_written_records() {
        let sample = record(RecordType::SAMPLE, &[7, 0x1000, 3, 99]);
        let longer = record(RecordType::SAMPLE, &[7, 0x1000, 3, 99, 1, 2]);
        let comm = record(RecordType::COMM, &[5]);
        let mut heads = Heads::default();
        let batch = Batch::read(&sample, &mut heads);
        let first = batch.records().next().expect("a record");
        let mut buffer = RecordBuffer::default();
        buffer.push(first);
        buffer.replace(first, |bytes| bytes.extend_from_slice(&longer));
        buffer.write(|bytes| bytes.extend_from_slice(&comm));
        let batch = buffer.batch();
        let records: Vec<&[u8]> = batch.records().map(|record| record.bytes).collect();
        assert_eq!(records, [&*sample, &longer, &comm]);
        let samples = batch.records().filter(|record| record.sample().is_some());
        assert_eq!(samples.count(), 2);
        let all = [&*sample, &longer, &comm].concat();
        assert_eq!(batch.pieces().collect::<Vec<_>>(), [&*all]);
        buffer.clear();
        assert_eq!(buffer.batch().records().count(), 0);
    }
}

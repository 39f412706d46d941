//! Records: the framing of all data in a perf.data file.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | type |
//! | 4 | 2 | misc |
//! | 6 | 2 | size, this header included |
//! | 8 | size - 8 | body |

use super::{SampleId, SampleType};

/// Type of a record: below 64 of the kernel (`enum perf_event_type`), from 64 on of perf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u32);

impl RecordType {
    /// A mapping, without the identity of the file.
    pub const MMAP: Self = Self(1);
    /// Lost records since the last one.
    pub const LOST: Self = Self(2);
    /// A thread's name.
    pub const COMM: Self = Self(3);
    /// A thread's end.
    pub const EXIT: Self = Self(4);
    /// A new thread or process.
    pub const FORK: Self = Self(7);
    /// A sample.
    pub const SAMPLE: Self = Self(9);
    /// A mapping, with device and inode or build-id.
    pub const MMAP2: Self = Self(10);
    /// Samples lost by one event.
    pub const LOST_SAMPLES: Self = Self(13);
    /// The part of call chains in user space, when the thread returns there (Linux 6.19 and later).
    pub const CALLCHAIN_DEFERRED: Self = Self(22);
    /// perf, pipe mode: an attr and its ids.
    pub const HEADER_ATTR: Self = Self(64);
    /// perf: ignored by perf's reader; usdtrec uses it for footer and definitions.
    pub const HEADER_EVENT_TYPE: Self = Self(65);
    /// perf, pipe mode: formats of tracepoints, which follow the record.
    pub const HEADER_TRACING_DATA: Self = Self(66);
    /// perf: all events of the previous round can be delivered.
    pub const FINISHED_ROUND: Self = Self(68);
    /// perf: data of a processor's trace (`AUX`), which follow the record: their length is the first 8 bytes of its body.
    pub const AUXTRACE: Self = Self(71);
    /// perf, pipe mode: a feature section.
    pub const HEADER_FEATURE: Self = Self(80);
    /// perf: compressed records.
    pub const COMPRESSED: Self = Self(81);
    /// perf from 6.17 on: compressed records, padded.
    pub const COMPRESSED2: Self = Self(83);
}

/// Type, `misc` and size in the header of the record at the front of bytes.
#[inline]
pub(crate) fn record_header(bytes: &[u8]) -> Option<(RecordType, u16, usize)> {
    let header = u64::from_le_bytes(*bytes.first_chunk()?);
    let kind = RecordType(header as u32);
    Some((kind, (header >> 32) as u16, (header >> 48) as usize))
}

/// An unparsed record.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// Type.
    pub kind: RecordType,
    /// `misc` of the record header.
    pub misc: u16,
    /// The bytes after the 8-byte header.
    pub body: &'a [u8],
    /// Offset of the record's header in the bytes that are iterated.
    pub offset: usize,
}

impl RawRecord<'_> {
    /// Appends the record, including its header.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut record = RecordBuilder::new(out, self.kind, self.misc);
        record.bytes(self.body);
        record.end();
    }
}

/// Iterator over the whole records in bytes; ends at the first one that is cut or invalid.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Records<'a> {
    /// Iterates over `bytes`, which start with a record header.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Offset of the first byte after the records returned so far.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    fn next(&mut self) -> Option<RawRecord<'a>> {
        let rest = self.bytes.get(self.offset..)?;
        let (kind, misc, size) = record_header(rest)?;
        let body = rest.get(8..size)?;
        let offset = self.offset;
        self.offset += size;
        Some(RawRecord {
            kind,
            misc,
            body,
            offset,
        })
    }
}

/// Records of a ring with sizes that are multiples of 8, as traces have them: the same bytes if they have, else what is put into `padded`.
///
/// The kernel writes other sizes where a sample has a copy of the stack (`PERF_SAMPLE_STACK_USER`) and the stack pointer of a 32-bit program is so close to
/// the end of its address space that the copy ends there (`perf_sample_ustack_size`, kernel/events/core.c). What is added is after all fields.
pub fn with_padding<'a>(records: &'a [u8], padded: &'a mut Vec<u8>) -> &'a [u8] {
    let is_whole = |record: RawRecord<'_>| record.body.len().is_multiple_of(8);
    if Records::new(records).all(is_whole) {
        return records;
    }
    padded.clear();
    let mut all = Records::new(records);
    for record in all.by_ref() {
        let mut written = RecordBuilder::new(padded, record.kind, record.misc);
        // The size has 16 bits.
        let most = (usize::from(u16::MAX) & !7) - 8;
        let body = &record.body[..record.body.len().min(most)];
        written.bytes(body);
        written.bytes(&[0; 7][..body.len().next_multiple_of(8) - body.len()]);
        written.end();
    }
    padded.extend_from_slice(&records[all.offset()..]);
    padded
}

/// Appends a record to a buffer, and sets its size at the end.
pub(crate) struct RecordBuilder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> RecordBuilder<'a> {
    /// Appends a record header.
    pub(crate) fn new(out: &'a mut Vec<u8>, kind: RecordType, misc: u16) -> Self {
        let start = out.len();
        out.extend(kind.0.to_le_bytes());
        out.extend(misc.to_le_bytes());
        out.extend([0; 2]);
        Self { out, start }
    }

    /// Appends to the body.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends the sample id and sets the size.
    pub(crate) fn finish(self, id: &SampleId, sample_type: SampleType) {
        id.encode(sample_type, self.out);
        self.end();
    }

    /// Sets the size, for records of perf, which have no sample id.
    pub(crate) fn end(self) {
        let size = (self.out.len() - self.start) as u16;
        self.out[self.start + 6..self.start + 8].copy_from_slice(&size.to_le_bytes());
    }
}

/// Encodes a string with NUL, padded to 8 bytes, and cut to `PATH_MAX`, so that it fits into a record.
pub(crate) fn padded(string: &[u8]) -> Vec<u8> {
    const PATH_MAX: usize = 4096;
    let mut bytes = string[..string.len().min(PATH_MAX - 1)].to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(size: u16) -> Vec<u8> {
        let mut record = vec![7; size.into()];
        record[..4].copy_from_slice(&RecordType::SAMPLE.0.to_le_bytes());
        record[6..8].copy_from_slice(&size.to_le_bytes());
        record
    }

    #[test]
    fn sizes_become_multiples_of_eight() {
        let whole = [record(16), record(8)].concat();
        assert_eq!(with_padding(&whole, &mut Vec::new()), whole);
        let odd = [
            record(20),
            record(16),
            record(9),
            record(12),
            record(65_535),
        ]
        .concat();
        // What is no whole record stays as it is.
        let odd = [&odd[..], &record(24)[..20]].concat();
        let mut padded = Vec::new();
        let padded = with_padding(&odd, &mut padded);
        let sizes = Records::new(padded).map(|record| 8 + record.body.len());
        assert_eq!(sizes.collect::<Vec<_>>(), [24, 16, 16, 16, 65_528]);
        assert_eq!(padded[8..20], record(20)[8..]);
        assert_eq!(padded[20..24], [0; 4]);
        assert_eq!(padded[padded.len() - 20..], record(24)[..20]);
    }
}

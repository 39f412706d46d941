//! Parts of a head that are written into the data, after records of samples: perf must find the bytes of a section in one piece, and ignore
//! them as records.
//!
//! They are in records of type 65, which perf ignores. A record has at most 65535 bytes. Where a section is longer, the header of the next
//! record is inside the section, in 8 bytes that its readers skip: in an attr those of `sample_regs_intr`, which samples have no use for; in
//! the formats of tracepoints, after a NUL that ends the text of a format.

use super::chunk::RECORD_HEADER;
use super::footer::MIN_RECORD;
use crate::perf::tracing_data::TextSink;
use crate::perf::{Attr, RecordType};

/// Maximum length of a record, bytes.
pub(crate) const MAX_RECORD: usize = u16::MAX as usize / 8 * 8;
/// Maximum length of what is between two places for a record header, bytes.
pub(crate) const MAX_PIECE: usize = 32 << 10;

/// Appends bytes, and the headers of the records that they are in.
#[derive(Debug)]
pub(crate) struct SectionRecords<'a> {
    out: &'a mut Vec<u8>,
    /// Offset of the current record's header in `out`.
    record: usize,
}

impl<'a> SectionRecords<'a> {
    /// Begins a record.
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        let record = out.len();
        put_header(out);
        Self { out, record }
    }

    /// The bytes, to append to.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Whether `len` bytes and the place for another header fit into the current record.
    fn has_room(&self, len: usize) -> bool {
        self.out.len() - self.record + len + RECORD_HEADER <= MAX_RECORD
    }

    /// Begins another record if `len` bytes do not fit into the current one. Not within a section.
    pub(crate) fn make_room(&mut self, len: usize) {
        if !self.has_room(len) {
            self.end_record();
            self.begin_record();
        }
    }

    /// Appends an attr. `following` is the length of what is appended before the next one or the end, bytes, at most [`MAX_PIECE`].
    pub(crate) fn put_attr(&mut self, attr: &Attr, following: usize) {
        let start = self.out.len();
        attr.encode(self.out);
        if !self.has_room(following + Attr::WRITTEN) {
            let rest = self.out.split_off(start + Attr::REGS_INTR_AT);
            self.set_size();
            self.begin_record();
            self.out
                .extend_from_slice(rest.get(RECORD_HEADER..).unwrap_or_default());
        }
    }
}

impl TextSink for SectionRecords<'_> {
    fn bytes(&mut self) -> &mut Vec<u8> {
        self.out
    }

    fn put_text(&mut self, text: &str, following: usize) {
        let length_at = self.out.len();
        self.out.extend([0; 8]);
        self.out.extend_from_slice(text.as_bytes());
        if !self.has_room(following + 2 * RECORD_HEADER) {
            self.out.push(0);
            let size = (self.out.len() - self.record).next_multiple_of(8);
            self.out.resize(self.record + size, 0);
            self.set_size();
            self.begin_record();
        }
        let len = (self.out.len() - length_at - 8) as u64;
        self.out[length_at..length_at + 8].copy_from_slice(&len.to_le_bytes());
    }
}

impl SectionRecords<'_> {
    /// Ends the last record. Returns the offset in the bytes after what was appended.
    pub(crate) fn end(mut self) -> usize {
        let end = self.out.len();
        self.end_record();
        end
    }

    fn end_record(&mut self) {
        let size = self.out.len() - self.record;
        let size = size.next_multiple_of(8).max(MIN_RECORD);
        self.out.resize(self.record + size, 0);
        self.set_size();
    }

    fn set_size(&mut self) {
        let size = (self.out.len() - self.record) as u16;
        self.out[self.record + 6..self.record + 8].copy_from_slice(&size.to_le_bytes());
    }

    fn begin_record(&mut self) {
        self.record = self.out.len();
        put_header(self.out);
    }
}

/// Appends a record header without a size.
fn put_header(out: &mut Vec<u8>) {
    out.extend(RecordType::HEADER_EVENT_TYPE.0.to_le_bytes());
    out.extend([0; 4]);
}

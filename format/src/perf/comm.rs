//! `PERF_RECORD_COMM`: a thread's name.

use super::cursor::{Cursor, until_nul};
use super::record::{RecordBuilder, padded};
use super::{RawRecord, RecordType, SampleId, SampleType, SplitBody};

/// A thread's name.
///
/// Body: pid (4 bytes), tid (4), name with NUL padded to 8, sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Whether the name changed by `execve` (`PERF_RECORD_MISC_COMM_EXEC`).
    pub exec: bool,
    /// The name, without NUL; at most 15 bytes from the kernel.
    pub name: &'a [u8],
    /// Sample id, the trailer of the record.
    pub id: SampleId,
}

impl<'a> Comm<'a> {
    const EXEC: u16 = 1 << 13;

    /// Parses a record; `None` if it is not a COMM record or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        if record.kind != RecordType::COMM {
            return None;
        }
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let mut cursor = Cursor::new(fields);
        Some(Self {
            pid: cursor.i32()?,
            tid: cursor.i32()?,
            exec: record.misc & Self::EXEC != 0,
            name: until_nul(cursor.rest()),
            id,
        })
    }

    /// Appends the record.
    pub fn encode(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        let misc = if self.exec { Self::EXEC } else { 0 };
        let mut record = RecordBuilder::new(out, RecordType::COMM, misc);
        record.bytes(&self.pid.to_le_bytes());
        record.bytes(&self.tid.to_le_bytes());
        record.bytes(&padded(self.name));
        record.finish(&self.id, sample_type);
    }
}

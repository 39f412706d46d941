//! `PERF_RECORD_FORK` and `PERF_RECORD_EXIT`: start and end of a thread. `PERF_RECORD_COMM`: its name.

use super::cursor::{Cursor, until_nul};
use super::record::{RecordBuilder, padded};
use super::{RawRecord, RecordType, SampleId, SampleType, SplitBody};

/// Start or end of a thread.
///
/// Body: pid 4, parent pid 4, tid 4, parent tid 4, time 8, sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: i32,
    /// Parent process; for a new thread its own process.
    pub parent_pid: i32,
    /// Thread.
    pub tid: i32,
    /// Thread that created it.
    pub parent_tid: i32,
    /// ns of the trace's clock.
    pub time: u64,
    /// FORK only: synthesized for a thread that already ran (`PERF_RECORD_MISC_FORK_EXEC`), which does not inherit
    /// the parent's mappings.
    pub already_ran: bool,
    /// Sample id, the trailer of the record.
    pub id: SampleId,
}

impl Task {
    const FORK_EXEC: u16 = 1 << 13;

    /// Parses a FORK record; `None` if it is a different record or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse_fork(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        (record.kind == RecordType::FORK)
            .then(|| Self::parse(record, sample_type))
            .flatten()
    }

    /// Parses an EXIT record; `None` if it is a different record or is too short.
    #[must_use]
    pub fn parse_exit(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        (record.kind == RecordType::EXIT)
            .then(|| Self::parse(record, sample_type))
            .flatten()
    }

    fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let mut cursor = Cursor::new(fields);
        Some(Self {
            pid: cursor.i32()?,
            parent_pid: cursor.i32()?,
            tid: cursor.i32()?,
            parent_tid: cursor.i32()?,
            time: cursor.u64()?,
            already_ran: record.misc & Self::FORK_EXEC != 0,
            id,
        })
    }

    /// Appends a FORK record.
    pub fn encode_fork(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        let misc = if self.already_ran { Self::FORK_EXEC } else { 0 };
        self.encode(RecordType::FORK, misc, sample_type, out);
    }

    /// Appends an EXIT record.
    pub fn encode_exit(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        self.encode(RecordType::EXIT, 0, sample_type, out);
    }

    fn encode(&self, kind: RecordType, misc: u16, sample_type: SampleType, out: &mut Vec<u8>) {
        let mut record = RecordBuilder::new(out, kind, misc);
        for id in [self.pid, self.parent_pid, self.tid, self.parent_tid] {
            record.bytes(&id.to_le_bytes());
        }
        record.bytes(&self.time.to_le_bytes());
        record.finish(&self.id, sample_type);
    }
}

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

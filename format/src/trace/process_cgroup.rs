//! The control group of a process, the program that it executes, its parent and its service, as a recorder reads them in `/proc/PID` after the first hit
//! of the process.
//!
//! perf names control groups by the id of one in each sample (`PERF_SAMPLE_CGROUP`), which hits of probes do not have. So this is a record of
//! type 65, which perf ignores, among the records of processes:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTCGRP` |
//! | 8 | 4 | process |
//! | 12 | 4 | its parent; 0 if that is not known |
//! | 16 | | path of the control group with NUL, padded with zeros to a multiple of 8; empty if it could not be read |
//! | | | path of the program likewise |
//! | | | name of the parent likewise |
//! | | | name of the service likewise; padded to at least 80 bytes of the whole record |
//! | last | | sample id; its time is that from which the process was there |

use super::own_record::{Magic, OwnFields, is_own, own_fields};
use super::{fired_trigger, own_record, pause, shortfall, string_argument};
use crate::perf::cursor::until_nul;
use crate::perf::record::{RecordBuilder, padded};
use crate::perf::{RawRecord, RecordType, SampleId, SampleType};

const MAGIC: Magic = *b"USDTCGRP";
/// Minimum length of the strings, bytes, so that the record has 80: perf 6.1 reads so many before it ignores it.
const MIN_STRINGS: usize = 56;

/// The control group of a process, the program that it executes, its parent and its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessCgroup<'a> {
    /// Process.
    pub pid: i32,
    /// Path of the control group in its hierarchy (`/system.slice/cron.service`), as cgroups(7) has it in `/proc/PID/cgroup`. Empty if it is
    /// not known, because the process had ended. At most 4095 bytes.
    pub path: &'a [u8],
    /// Path of the program, as `/proc/PID/exe` has it: with ` (deleted)` if the file is, and as the process sees it if it has another root.
    /// Empty if it is not known. At most 4095 bytes.
    pub exe: &'a [u8],
    /// The process that started it, or that has adopted it since; 0 if that is not known.
    pub parent: i32,
    /// What the parent is called (`/proc/PID/comm`); empty if that is not known.
    pub parent_name: &'a [u8],
    /// What the process calls its service: `OTEL_SERVICE_NAME`, or `service.name` of `OTEL_RESOURCE_ATTRIBUTES`, in its environment. Empty if it has
    /// none, or if that could not be read.
    pub service: &'a [u8],
    /// Sample id, the trailer of the record. Its time is that from which the process was there, ns.
    pub id: SampleId,
}

impl<'a> ProcessCgroup<'a> {
    /// Whether this is such a record, which may be too short.
    #[must_use]
    pub fn is(record: &RawRecord<'_>) -> bool {
        is_own(record, MAGIC)
    }

    /// Parses a record; `None` if it is another one or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        let OwnFields { mut cursor, id } = own_fields(record, MAGIC, sample_type)?;
        let pid = cursor.i32()?;
        let parent = cursor.i32()?;
        let mut rest = cursor.rest();
        let mut next = || {
            let string = until_nul(rest);
            // With its NUL, padded.
            let end = (string.len() + 1).next_multiple_of(8);
            rest = rest.get(end..).unwrap_or_default();
            string
        };
        Some(Self {
            pid,
            path: next(),
            exe: next(),
            parent,
            parent_name: next(),
            service: next(),
            id,
        })
    }

    /// Appends the record. Longer strings are cut.
    pub fn encode(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        let strings = [self.path, self.exe, self.parent_name, self.service];
        let mut strings = strings.map(padded).concat();
        strings.resize(strings.len().max(MIN_STRINGS), 0);
        let mut record = RecordBuilder::new(out, RecordType::HEADER_EVENT_TYPE, 0);
        record.bytes(&MAGIC);
        record.bytes(&self.pid.to_le_bytes());
        record.bytes(&self.parent.to_le_bytes());
        record.bytes(&strings);
        record.finish(&self.id, sample_type);
    }
}

/// Whether a record of type 65 with this body is read with the records of processes. Eight bytes of the body are enough.
pub(crate) fn is_of_processes(body: &[u8]) -> bool {
    let magics = [
        MAGIC,
        shortfall::MAGIC,
        string_argument::MAGIC,
        fired_trigger::MAGIC,
        pause::MAGIC,
        own_record::TIME_MARK,
    ];
    magics.iter().any(|magic| body.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::ProcessCgroup;
    use crate::perf::{Records, SampleId, SampleType};

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    fn encoded(path: &[u8], exe: &[u8]) -> Vec<u8> {
        let id = SampleId {
            time: 99,
            ..SampleId::default()
        };
        let mut out = Vec::new();
        let cgroup = ProcessCgroup {
            pid: 7,
            path,
            exe,
            parent: 1,
            parent_name: path,
            service: exe,
            id,
        };
        cgroup.encode(IDS, &mut out);
        out
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let long = [b'x'; 5000];
        for path in [&b""[..], b"/", b"/system.slice/a\xff.service", &long] {
            for exe in [&b""[..], b"/bin/x", b"/seven7", b"/a\xff (deleted)", &long] {
                let bytes = encoded(path, exe);
                assert!(bytes.len() >= 80 && bytes.len().is_multiple_of(8));
                let record = Records::new(&bytes).next().expect("a record");
                let read = ProcessCgroup::parse(&record, IDS).expect("a whole record");
                assert_eq!(read.pid, 7);
                assert_eq!(read.path, &path[..path.len().min(4095)]);
                assert_eq!(read.exe, &exe[..exe.len().min(4095)]);
                let parent = (read.parent, read.parent_name, read.service);
                assert_eq!(parent, (1, read.path, read.exe));
                assert_eq!(read.id.time, 99);
            }
        }
    }

    #[test]
    fn short_records_are_none() {
        let bytes = encoded(b"/a", b"/bin/a");
        for size in (8..bytes.len()).step_by(8) {
            let mut cut = bytes[..size].to_vec();
            cut[6..8].copy_from_slice(&(size as u16).to_le_bytes());
            let record = Records::new(&cut).next().expect("a record");
            let needed = 8 + 16 + SampleId::len(IDS);
            let read = ProcessCgroup::parse(&record, IDS);
            assert_eq!(read.is_some(), size >= needed, "{size} bytes");
        }
    }
}

//! Feature sections: the description of the machine and the recording in a perf.data file.
//!
//! The table of the sections is at the end of the data: {offset (8 bytes), size (8)} for each bit set in the header, in the
//! order of the bits. The bodies may be anywhere in the file. A string is a length (4; with NUL and padding, a
//! multiple of 64) and the bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::cursor::{Cursor, until_nul};
use super::record::{RecordBuilder, padded};
use super::{Attr, EventAttr, RawRecord, RecordType, Records};
use crate::build_id::BuildId;

/// Number of a feature: its bit in the header (`HEADER_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Feature(pub(crate) u32);

impl Feature {
    /// Formats of tracepoints.
    pub(crate) const TRACING_DATA: Self = Self(1);
    /// Build-ids of files with samples, as records.
    pub(crate) const BUILD_ID: Self = Self(2);
    /// String.
    pub(crate) const HOSTNAME: Self = Self(3);
    /// String.
    pub(crate) const OSRELEASE: Self = Self(4);
    /// String; in traces of usdtrec the definitions follow it.
    pub(crate) const VERSION: Self = Self(5);
    /// String: `uname -m`.
    pub(crate) const ARCH: Self = Self(6);
    /// Highest CPU number plus 1: 4; CPUs on line: 4.
    pub(crate) const NRCPUS: Self = Self(7);
    /// String.
    pub(crate) const CPUDESC: Self = Self(8);
    /// kB: 8.
    pub(crate) const TOTAL_MEM: Self = Self(10);
    /// Count 4, strings.
    pub(crate) const CMDLINE: Self = Self(11);
    /// Names of the attrs.
    pub(crate) const EVENT_DESC: Self = Self(12);
    /// Count 4, {number 4, string}.
    pub(crate) const PMU_MAPPINGS: Self = Self(16);
    /// First and last time of a sample: 8, 8.
    pub(crate) const SAMPLE_TIME: Self = Self(21);
    /// Resolution, ns: 8.
    pub(crate) const CLOCKID: Self = Self(23);
    /// Version 8: the records are in files `data.N` beside this one.
    pub(crate) const DIR_FORMAT: Self = Self(24);
    /// Version 4 (0), type 4 (1: zstd), level 4, ratio 4, size of the decompression buffer 4.
    pub(crate) const COMPRESSED: Self = Self(27);
    /// Version 4 (1), clock id 4, wall clock ns 8, this clock ns 8.
    pub(crate) const CLOCK_DATA: Self = Self(29);
}

/// Appends a string.
pub(crate) fn put_string(string: &str, out: &mut Vec<u8>) {
    const ALIGN: usize = 64;
    let len = (string.len() + 1).next_multiple_of(ALIGN);
    out.extend((len as u32).to_le_bytes());
    let end = out.len() + len;
    out.extend_from_slice(string.as_bytes());
    out.resize(end, 0);
}

/// Parses a string. Bytes that are not UTF-8 are replaced by U+FFFD.
pub(crate) fn take_string(cursor: &mut Cursor<'_>) -> Option<String> {
    let len = cursor.u32()?;
    let bytes = cursor.take(len as usize)?;
    Some(String::from_utf8_lossy(until_nul(bytes)).into_owned())
}

/// Appends a count and strings.
pub(crate) fn put_strings(strings: &[String], out: &mut Vec<u8>) {
    out.extend((strings.len() as u32).to_le_bytes());
    for string in strings {
        put_string(string, out);
    }
}

/// Parses a count and that many strings.
pub(crate) fn take_strings(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    let count = cursor.u32()?;
    (0..count).map(|_| take_string(cursor)).collect()
}

/// An entry of `PMU_MAPPINGS`: a PMU (performance monitoring unit) of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Its type number, `perf_event_attr.type`.
    pub kind: u32,
    /// Its name in `/sys/bus/event_source/devices`.
    pub name: String,
}

/// An entry of `BUILD_ID`: a file, and its build-id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// The build-id.
    pub build_id: BuildId,
    /// Path of the file.
    pub path: PathBuf,
}

/// Appends `PMU_MAPPINGS`.
pub(crate) fn put_pmus(pmus: &[Pmu], out: &mut Vec<u8>) {
    out.extend((pmus.len() as u32).to_le_bytes());
    for pmu in pmus {
        out.extend(pmu.kind.to_le_bytes());
        put_string(&pmu.name, out);
    }
}

/// Parses `PMU_MAPPINGS`.
pub(crate) fn take_pmus(cursor: &mut Cursor<'_>) -> Option<Vec<Pmu>> {
    let count = cursor.u32()?;
    (0..count)
        .map(|_| {
            Some(Pmu {
                kind: cursor.u32()?,
                name: take_string(cursor)?,
            })
        })
        .collect()
}

/// Appends `EVENT_DESC`: count 4, attr size 4, {attr, count of ids 4, name, ids}.
pub(crate) fn put_event_desc(events: &[EventAttr], out: &mut Vec<u8>) {
    out.extend((events.len() as u32).to_le_bytes());
    out.extend((Attr::WRITTEN as u32).to_le_bytes());
    for event in events {
        event.attr.encode(out);
        put_name_and_ids(&event.name, &event.ids, out);
    }
}

/// Appends what follows an attr in `EVENT_DESC`.
pub(crate) fn put_name_and_ids(name: &str, ids: &[u64], out: &mut Vec<u8>) {
    out.extend((ids.len() as u32).to_le_bytes());
    put_string(name, out);
    out.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
}

/// Parses `EVENT_DESC`.
pub(crate) fn take_event_desc(cursor: &mut Cursor<'_>) -> Option<Vec<EventAttr>> {
    let count = cursor.u32()?;
    let attr_size = cursor.u32()? as usize;
    (0..count)
        .map(|_| {
            let attr = Attr::parse(cursor.take(attr_size)?)?;
            let ids = cursor.u32()? as usize;
            let name = take_string(cursor)?;
            let ids = take_ids(cursor.take(ids.checked_mul(8)?)?);
            Some(EventAttr { attr, name, ids })
        })
        .collect()
}

/// The entries of `BUILD_ID`, each framed as a record: pid 4, build-id 20, its length 1 (if misc says so, else it is
/// 20), padding 3, path with NUL. A malformed entry ends the list.
pub(crate) fn build_ids(section: &[u8]) -> Vec<BuildIdEntry> {
    const HAS_LENGTH: u16 = 1 << 15;
    let entry = |record: RawRecord<'_>| {
        let mut cursor = Cursor::new(record.body);
        cursor.u32()?;
        let bytes = cursor.take(BuildId::MAX_IN_PERF)?;
        let len = cursor.u8()?;
        cursor.take(3)?;
        let len = if record.misc & HAS_LENGTH != 0 {
            usize::from(len)
        } else {
            bytes.len()
        };
        let build_id = BuildId::new(bytes.get(..len)?).ok()?;
        let path = OsStr::from_bytes(until_nul(cursor.rest()));
        Some(BuildIdEntry {
            build_id,
            path: PathBuf::from(path),
        })
    };
    Records::new(section).map_while(entry).collect()
}

/// Appends `BUILD_ID`. Which files are the kernel's is not known here; perf needs it for paths in brackets only.
pub(crate) fn put_build_ids(entries: &[BuildIdEntry], out: &mut Vec<u8>) {
    const KERNEL: u16 = 1;
    const USER: u16 = 2;
    const HAS_LENGTH: u16 = 1 << 15;
    for BuildIdEntry { build_id, path } in entries {
        let path = path.as_os_str().as_bytes();
        let mode = if path.starts_with(b"[") { KERNEL } else { USER };
        let mut record = RecordBuilder::new(out, RecordType(0), HAS_LENGTH | mode);
        record.bytes(&(-1_i32).to_le_bytes());
        let mut id = [0; BuildId::MAX_IN_PERF];
        let build_id = build_id.in_perf();
        let bytes = build_id.as_bytes();
        id[..bytes.len()].copy_from_slice(bytes);
        record.bytes(&id);
        record.bytes(&[bytes.len() as u8, 0, 0, 0]);
        record.bytes(&padded(path));
        record.end();
    }
}

/// Parses ids of 8 bytes; remaining bytes are ignored.
pub(crate) fn take_ids(bytes: &[u8]) -> Vec<u64> {
    let (ids, _) = bytes.as_chunks::<8>();
    ids.iter().map(|id| u64::from_le_bytes(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_padded_to_64() {
        for (len, padded) in [(0, 64), (63, 64), (64, 128)] {
            let mut out = Vec::new();
            put_string(&"x".repeat(len), &mut out);
            assert_eq!(out.len(), 4 + padded);
            let text = take_string(&mut Cursor::new(&out)).unwrap();
            assert_eq!(text.len(), len);
        }
    }

    #[test]
    fn build_ids_are_taken_up_to_the_first_bad_one() {
        let entry = |misc: u16, len: u8| {
            let mut out = Vec::new();
            out.extend(67_u32.to_le_bytes());
            out.extend(misc.to_le_bytes());
            out.extend((8 + 4 + 24 + 8_u16).to_le_bytes());
            out.extend((-1_i32).to_le_bytes());
            out.extend([7; 20]);
            out.extend([len, 0, 0, 0]);
            out.extend(b"/bin/x\0\0");
            out
        };
        let whole = [entry(0, 0), entry(1 << 15, 8)].concat();
        let found = build_ids(&whole);
        let lengths: Vec<usize> = found
            .iter()
            .map(|entry| entry.build_id.as_bytes().len())
            .collect();
        assert_eq!(lengths, [20, 8]);
        assert_eq!(found[0].path, PathBuf::from("/bin/x"));
        assert_eq!(build_ids(&[whole, entry(1 << 15, 21)].concat()).len(), 2);
        for len in 0..44 {
            assert!(build_ids(&entry(0, 0)[..len]).is_empty());
        }
    }

    #[test]
    fn claims_beyond_the_section_are_refused() {
        let claim = u32::MAX.to_le_bytes();
        assert!(take_string(&mut Cursor::new(&claim)).is_none());
        assert!(take_strings(&mut Cursor::new(&claim)).is_none());
        assert!(take_pmus(&mut Cursor::new(&claim)).is_none());
    }
}

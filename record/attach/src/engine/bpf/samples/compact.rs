//! Converts a record of the ring to one of the trace: the space of its strings is cut to their length, and strings are escaped to one line.

use usdtrec_format::raw::{StringField, escape_into, looks_like_string};
use usdtrec_format::{RawField, RawLayout, RawString, StringStatus};

use super::super::contract::{END_SIZE, RAW, Rooms, THREAD};
use super::string_history::StringHistory;
use crate::engine::numbers::bytes_at;
use crate::plan::call_graph::CallGraph;
use crate::plan::capture::MIN_POINTER;

/// Maximum size of a record: 16 bits, and a multiple of 8.
const MAX_RECORD_BYTES: usize = 0xfff8;
/// Space for the NULs of later strings, and for padding, bytes.
const SPARE: usize = 64;

/// Maximum size of a call chain with its count and markers, bytes.
const MAX_CHAIN_BYTES: usize = 8 * (CallGraph::MAX_FRAMES as usize + 32);

/// The evidence of the strings of a site, and the facts to be written for readers, with the index of the string.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Evidence<'a> {
    pub histories: &'a mut [StringHistory],
    pub news: &'a mut Vec<(usize, bool)>,
    /// Whether memory at an address could not be read, so that a reader may find a string there.
    pub lacks_strings: &'a mut bool,
}

/// What a record of the ring consists of.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct Shape<'a> {
    pub layout: &'a RawLayout,
    pub rooms: Rooms,
    /// Size of what the callers are found from, after the record, bytes.
    pub end: usize,
}

/// Appends a record of the ring, which does not contain its end. Returns `false`, and appends nothing, if the record is not as long as its layout requires.
pub(in crate::engine::bpf) fn compact(
    record: &[u8],
    Shape { layout, rooms, end }: Shape<'_>,
    evidence: Evidence<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let fixed = RAW + usize::from(layout.size);
    let Some(room) = rooms.of_record(record.len()) else {
        return false;
    };
    let Some((head, mut strings)) = record.split_at_checked(fixed) else {
        return false;
    };
    let start = out.len();
    out.extend_from_slice(head);
    // `common_pid`, in whose place the size of the end is.
    out.copy_within(start + THREAD..start + THREAD + 4, start + END_SIZE);
    let Evidence {
        histories,
        news,
        lacks_strings,
    } = evidence;
    let mut histories = histories.iter_mut();
    let limits = StringLimits {
        string: layout.string_limit,
        record: MAX_RECORD_BYTES.saturating_sub(match end {
            0 => 0,
            end => end.max(MAX_CHAIN_BYTES) + SPARE,
        }),
    };
    for (index, StringField { address, string }) in layout.string_fields().enumerate() {
        let Some((bytes, rest)) = strings.split_at_checked(room.each) else {
            out.truncate(start);
            return false;
        };
        strings = rest;
        let read = Read {
            bytes,
            address: number(head, address),
            history: histories.next(),
        };
        *lacks_strings |= is_unread(string, read.address, head);
        let told = append(string, read, limits, start, out);
        news.extend(told.map(|told| (index, told)));
    }
    finish(start, out);
    true
}

/// Whether a record of the ring has a string that is too long for a short record; `None` if its layout has no short records.
pub(in crate::engine::bpf) fn is_long(
    record: &[u8],
    layout: &RawLayout,
    rooms: Rooms,
) -> Option<bool> {
    let short = rooms.short?.each;
    // The status is the length plus one.
    let lengths = layout.strings().map(|string| status_of(record, string));
    Some(
        lengths
            .max()
            .is_some_and(|longest| usize::try_from(longest).is_ok_and(|len| len >= short)),
    )
}

/// Pads the record that begins at `start` and is at least [`RAW`] bytes long, and writes its sizes.
pub(super) fn finish(start: usize, out: &mut Vec<u8>) {
    let raw = (out.len() - start - RAW + 4).next_multiple_of(8) - 4;
    out.resize(start + RAW + raw, 0);
    let size = ((RAW + raw) as u16).to_ne_bytes();
    out[start + 6..start + 8].copy_from_slice(&size);
    out[start + 48..start + 52].copy_from_slice(&(raw as u32).to_ne_bytes());
}

/// What a program read for a string.
struct Read<'a> {
    /// Its space in the record.
    bytes: &'a [u8],
    /// Value of the argument.
    address: u64,
    history: Option<&'a mut StringHistory>,
}

/// The number in a field of a record.
fn number(record: &[u8], field: RawField) -> u64 {
    let start = RAW + usize::from(field.offset);
    let bytes = record.get(start..start + usize::from(field.size));
    let bytes = bytes.unwrap_or_default().iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether the memory at an address could not be read, although something may be there.
fn is_unread(string: RawString, address: u64, record: &[u8]) -> bool {
    let status = StringStatus::from_word(status_of(record, string), i16::MAX.cast_unsigned());
    let is_unread = matches!(
        status,
        StringStatus::Fault | StringStatus::NotResident | StringStatus::NotRead
    );
    is_unread && address >= MIN_POINTER
}

/// The status of a string of a record, as its program wrote it; 0 if the record is shorter.
fn status_of(record: &[u8], string: RawString) -> i16 {
    let at = RAW + usize::from(string.status);
    bytes_at(record, at).map_or(0, i16::from_ne_bytes)
}

/// Appends a string to the record that begins at `start`, and writes its location and status. Returns the fact to be written for readers.
fn append(
    string: RawString,
    read: Read<'_>,
    limits: StringLimits,
    start: usize,
    out: &mut Vec<u8>,
) -> Option<bool> {
    let status_at = start + RAW + usize::from(string.status);
    let returned = i16::from_ne_bytes([out[status_at], out[status_at + 1]]);
    let stored = judge(returned, read.bytes, limits.string, string.known);
    let mut news = None;
    if let Some(history) = read.history.filter(|_| !string.known) {
        match stored.status {
            StringStatus::NoString => news = history.note_other(),
            StringStatus::Whole | StringStatus::Cut => news = history.note_string(stored.bytes),
            _ => {}
        }
    }
    put_string(string, stored, limits, start, out);
    news
}

/// The limits of strings.
#[derive(Clone, Copy, Debug)]
struct StringLimits {
    /// Bytes of each string.
    string: u16,
    /// Of the record with all of its strings, bytes.
    record: usize,
}

/// A string as a record stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredString<'a> {
    pub status: StringStatus,
    /// Without a NUL; empty unless the status is [`StringStatus::Whole`] or [`StringStatus::Cut`].
    pub bytes: &'a [u8],
}

impl StoredString<'_> {
    /// No string, with the reason.
    pub(super) const fn without(status: StringStatus) -> Self {
        Self { status, bytes: &[] }
    }
}

/// Appends a string to the record that begins at `start` and has all its fields, and writes its location and status.
fn put_string(
    string: RawString,
    stored: StoredString<'_>,
    limits: StringLimits,
    start: usize,
    out: &mut Vec<u8>,
) {
    let StoredString { mut status, bytes } = stored;
    let at = out.len();
    let status_at = start + RAW + usize::from(string.status);
    if matches!(status, StringStatus::Whole | StringStatus::Cut) {
        escape_into(bytes, out);
        let left = (start + limits.record).saturating_sub(at + SPARE);
        if out.len() - at > left {
            // A string of control characters, which take four bytes each when escaped, may not fit into a record.
            out.truncate(at);
            escape_into(&bytes[..bytes.len().min(left / 4)], out);
            status = StringStatus::Cut;
        }
    }
    out.push(0);
    let len = out.len() - at;
    let location = (len as u32) << 16 | (at - start - RAW) as u32;
    let location_at = start + RAW + usize::from(string.location);
    out[location_at..location_at + 4].copy_from_slice(&location.to_ne_bytes());
    let word = status.word(bytes.len() as u16, limits.string);
    out[status_at..status_at + 2].copy_from_slice(&word.to_ne_bytes());
}

/// The result of the program's read: `returned` is a count including the NUL, or an error number. For an empty string, kernels before 6.16 do
/// not count the NUL.
fn judge(returned: i16, room: &[u8], limit: u16, known: bool) -> StoredString<'_> {
    let Ok(len) = usize::try_from(returned).map(|len| len.saturating_sub(1)) else {
        return StoredString::without(StringStatus::from_word(returned, limit));
    };
    let kept = len.min(limit.into()).min(room.len());
    let bytes = &room[..kept];
    let status = if len > limit.into() {
        StringStatus::Cut
    } else {
        StringStatus::Whole
    };
    if known || looks_like_string(bytes, status == StringStatus::Cut) {
        StoredString { status, bytes }
    } else {
        StoredString::without(StringStatus::NoString)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::bpf::contract::rooms;
    use usdtrec_format::{RawArgument, RawField};

    fn compact(
        record: &[u8],
        layout: &RawLayout,
        histories: &mut [StringHistory],
        out: &mut Vec<u8>,
    ) -> bool {
        let shape = Shape {
            layout,
            rooms: rooms(layout),
            end: 0,
        };
        let evidence = Evidence {
            histories,
            news: &mut Vec::new(),
            lacks_strings: &mut false,
        };
        super::compact(record, shape, evidence, out)
    }

    fn layout(limit: u16, strings: u16) -> RawLayout {
        let argument = |index: u16| {
            RawArgument::Field(RawField {
                offset: 8,
                size: 8,
                signed: false,
                fault: None,
                string: Some(RawString {
                    location: 16 + 4 * index,
                    status: 16 + 4 * strings + 2 * index,
                    known: false,
                    length: None,
                }),
            })
        };
        RawLayout {
            id: 10_001,
            size: (16 + 6 * strings + 4).next_multiple_of(8) - 4,
            missing: None,
            string_limit: limit,
            arguments: (0..strings).map(argument).collect(),
            listed: false,
            thread_context: None,
            thread_waits: None,
        }
    }

    /// A record as a program writes it.
    fn record(layout: &RawLayout, strings: &[(i16, &[u8])]) -> Vec<u8> {
        let mut record = vec![0; RAW + usize::from(layout.size)];
        for (string, (returned, bytes)) in layout.strings().zip(strings) {
            let at = RAW + usize::from(string.status);
            record[at..at + 2].copy_from_slice(&returned.to_ne_bytes());
            let mut room = bytes.to_vec();
            room.resize(rooms(layout).whole.each, 0xee);
            record.extend(room);
        }
        record
    }

    /// Each string's status and bytes.
    fn read(out: &[u8], layout: &RawLayout) -> Vec<(StringStatus, Vec<u8>)> {
        let raw = &out[RAW..];
        let strings = layout.strings().map(|string| {
            let word = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
            let at = usize::from(string.location);
            let (offset, len) = (usize::from(word(at)), usize::from(word(at + 2)));
            let bytes = &raw[offset..offset + len];
            assert_eq!(bytes.last(), Some(&0));
            let status = word(string.status.into()).cast_signed();
            (
                StringStatus::from_word(status, layout.string_limit),
                bytes[..len - 1].to_vec(),
            )
        });
        strings.collect()
    }

    #[test]
    fn empty_fault_cut_and_no_string_differ() {
        let layout = layout(4, 6);
        let strings: [(i16, &[u8]); 6] = [
            (4, b"GET\0"),
            (1, b"\0"),
            (-14, b""),
            (5, b"full\0"),
            (6, b"longe\0"),
            (3, b"\x01\x02\0"),
        ];
        let mut out = b"before".to_vec();
        assert!(compact(
            &record(&layout, &strings),
            &layout,
            &mut [],
            &mut out
        ));
        let out = &out[6..];
        assert_eq!(
            read(out, &layout),
            [
                (StringStatus::Whole, b"GET".to_vec()),
                (StringStatus::Whole, vec![]),
                (StringStatus::Fault, vec![]),
                (StringStatus::Whole, b"full".to_vec()),
                (StringStatus::Cut, b"long".to_vec()),
                (StringStatus::NoString, vec![]),
            ]
        );
        assert_eq!(out.len() % 8, 0);
        assert_eq!(usize::from(u16::from_ne_bytes([out[6], out[7]])), out.len());
        let raw = u32::from_ne_bytes([out[48], out[49], out[50], out[51]]) as usize;
        assert_eq!(raw + RAW, out.len());
    }

    #[test]
    fn what_does_not_fit_a_record_is_cut() {
        let layout = layout(4096, 12);
        let mut newlines = [b'\n'; 4096];
        newlines[0] = b'a';
        let strings = [(4097, newlines.as_slice()); 12];
        let mut out = Vec::new();
        assert!(compact(
            &record(&layout, &strings),
            &layout,
            &mut [],
            &mut out
        ));
        assert!(out.len() <= MAX_RECORD_BYTES);
        let read = read(&out, &layout);
        assert_eq!(read[0].0, StringStatus::Whole);
        assert_eq!(read[11].0, StringStatus::Cut);
    }

    #[test]
    fn what_looks_like_a_string_is_one_whatever_its_length() {
        let layout = layout(16, 1);
        let mut histories = [StringHistory::default()];
        let mut status = |string: &[u8]| {
            let record = record(&layout, &[(string.len() as i16 + 1, string)]);
            let mut out = Vec::new();
            assert!(compact(&record, &layout, &mut histories, &mut out));
            read(&out, &layout)[0].0
        };
        use StringStatus::{NoString, Whole};
        for _ in 0..3 {
            assert_eq!(status(b"/"), Whole);
            assert_eq!(status(b"/a"), Whole);
            assert_eq!(status(b"GET"), Whole);
            assert_eq!(status(b""), Whole);
            assert_eq!(status(b"\x01"), NoString);
        }
    }

    #[test]
    fn a_short_record_is_refused() {
        let layout = layout(16, 1);
        let record = record(&layout, &[(1, b"\0")]);
        let mut out = Vec::new();
        assert!(!compact(
            &record[..record.len() - 8],
            &layout,
            &mut [],
            &mut out
        ));
        assert!(out.is_empty());
    }
}

//! How the probe definitions ride in a file.
//!
//! The blob stands in the `VERSION` feature section, behind the string (`perf inject` keeps it there), and once more at the
//! start of the data, cut into type-65 records (for streams, and if the feature table is lost):
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTDEFS` |
//! | 8 | 4 | version of this table: 1 |
//! | 12 | 4 | CRC-32 (IEEE) of the zstd frame |
//! | 16 | 8 | length of the JSON, bytes |
//! | 24 | 8 | length of the zstd frame, bytes |
//! | 32 | | zstd frame of the JSON of [`Definitions`] |
//!
//! A record's payload: `USDTPART`, number of the part from 0 4, parts 4, length 4, 0 4, bytes.

use std::io;

use super::chunk::RECORD_HEADER;
use super::codec;
use super::footer::put_ignored_record;
use super::source::Source;
use crate::Definitions;
use crate::perf::cursor::Cursor;
use crate::perf::{RawRecord, RecordType, Records};

const MAGIC: [u8; 8] = *b"USDTDEFS";
const VERSION: u32 = 1;
const PART_MAGIC: [u8; 8] = *b"USDTPART";
/// Bytes of the blob in one record: leaves room for the headers in 16 bits of size.
const PART: usize = 60_000;
/// Most bytes of JSON that are read, and of a blob.
const MAX_JSON: u64 = 64 << 20;
/// Most bytes of JSON that are read for each byte of the frame. Real ones have 5 to 50.
const MAX_RATIO: u64 = 1024;
/// JSON of which so much is read whatever the frame's length is.
const SMALL_JSON: u64 = 1 << 20;
/// Most values in the JSON.
const MAX_VALUES: usize = 4 << 20;
/// Most arguments of all probes together.
const MAX_ARGUMENTS: usize = 1 << 18;

/// The blob.
///
/// # Errors
/// Paths that are no UTF-8 have no JSON.
pub(crate) fn encode(definitions: &Definitions) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(definitions)?;
    let frame = codec::compress(&json)?;
    let mut blob = MAGIC.to_vec();
    blob.extend(VERSION.to_le_bytes());
    blob.extend(crc32fast::hash(&frame).to_le_bytes());
    blob.extend((json.len() as u64).to_le_bytes());
    blob.extend((frame.len() as u64).to_le_bytes());
    blob.extend(frame);
    Ok(blob)
}

/// Appends the blob as records.
pub(crate) fn put_records(blob: &[u8], out: &mut Vec<u8>) {
    let parts = blob.chunks(PART);
    let count = parts.len() as u32;
    for (number, part) in parts.enumerate() {
        put_ignored_record(out, |out| {
            out.extend(PART_MAGIC);
            out.extend((number as u32).to_le_bytes());
            out.extend(count.to_le_bytes());
            out.extend((part.len() as u32).to_le_bytes());
            out.extend([0; 4]);
            out.extend_from_slice(part);
        });
    }
}

/// The blob from the records at the start of the data. `None` if there is no whole one.
///
/// # Errors
/// The system call's.
pub(crate) fn read_records(source: &Source, data_offset: u64) -> io::Result<Option<Vec<u8>>> {
    let mut parts = Parts::default();
    let mut at = data_offset;
    let mut bytes = Vec::new();
    loop {
        source.read(at, usize::from(u16::MAX), &mut bytes)?;
        let Some(record) = Records::new(&bytes).next() else {
            return Ok(None);
        };
        let before = parts.next;
        if let Some(blob) = parts.take(&record) {
            return Ok(Some(blob));
        }
        if parts.next == before {
            return Ok(None);
        }
        at += (RECORD_HEADER + record.body.len()) as u64;
    }
}

/// The parts of a blob, put together in their order.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    blob: Vec<u8>,
    /// Number of the next part.
    next: u32,
}

impl Parts {
    /// Takes a record, if it holds the next part; gives the blob when it was the last.
    pub(crate) fn take(&mut self, record: &RawRecord<'_>) -> Option<Vec<u8>> {
        let (count, part) = part(record, self.next)?;
        if self.blob.len() as u64 > MAX_JSON {
            return None;
        }
        self.blob.extend_from_slice(part);
        self.next += 1;
        (self.next == count).then(|| {
            self.next = 0;
            std::mem::take(&mut self.blob)
        })
    }
}

/// How many parts there are, and the bytes of this one, if it is the one of that number.
fn part<'a>(record: &RawRecord<'a>, number: u32) -> Option<(u32, &'a [u8])> {
    if record.kind != RecordType::HEADER_EVENT_TYPE {
        return None;
    }
    let mut cursor = Cursor::new(record.body);
    if cursor.take(8)? != PART_MAGIC.as_slice() || cursor.u32()? != number {
        return None;
    }
    let count = cursor.u32()?;
    let len = cursor.u32()? as usize;
    cursor.u32()?;
    Some((count, cursor.take(len)?))
}

/// Definitions from the blob.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn decode(blob: &[u8]) -> Result<Definitions, String> {
    let (json_len, frame) =
        frame(blob).ok_or("the probe definitions are cut or their checksum does not fit")?;
    let most = SMALL_JSON + MAX_RATIO * frame.len() as u64;
    if json_len > most.min(MAX_JSON) {
        return Err(format!(
            "the probe definitions claim {json_len} bytes in {} compressed ones, which cannot be",
            frame.len()
        ));
    }
    let json = codec::decompress(frame, json_len + 1)
        .map_err(|error| format!("the probe definitions do not decompress: {error}"))?;
    parse(&json)
}

/// Definitions from their JSON. What is parsed takes up to 50 times the memory of what is written, so that is bounded first.
fn parse(json: &[u8]) -> Result<Definitions, String> {
    let too_many = |count, what, most| {
        Err(format!(
            "the probe definitions have {count} {what}, more than {most}"
        ))
    };
    let values = json.iter().filter(|&&byte| byte == b',').count();
    if values > MAX_VALUES {
        return too_many(values, "values", MAX_VALUES);
    }
    let definitions: Definitions = serde_json::from_slice(json)
        .map_err(|error| format!("the probe definitions are not understood: {error}"))?;
    let arguments = definitions.probes.iter().map(|probe| probe.arguments.len());
    match arguments.sum() {
        0..=MAX_ARGUMENTS => Ok(definitions),
        count => too_many(count, "arguments", MAX_ARGUMENTS),
    }
}

/// Length of the JSON and the frame.
fn frame(blob: &[u8]) -> Option<(u64, &[u8])> {
    let mut cursor = Cursor::new(blob);
    if cursor.take(8)? != MAGIC.as_slice() {
        return None;
    }
    cursor.u32()?;
    let crc = cursor.u32()?;
    let json_len = cursor.u64()?;
    let frame_len = usize::try_from(cursor.u64()?).ok()?;
    let frame = cursor.take(frame_len)?;
    (crc == crc32fast::hash(frame)).then_some((json_len, frame))
}

/// Whether `bytes` begin with a blob.
pub(crate) fn is_blob(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

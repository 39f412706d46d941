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

use std::io::Read;

use super::footer::put_ignored_record;
use crate::Definitions;
use crate::perf::cursor::Cursor;
use crate::perf::{RecordType, Records};

const MAGIC: [u8; 8] = *b"USDTDEFS";
const VERSION: u32 = 1;
const PART_MAGIC: [u8; 8] = *b"USDTPART";
/// Bytes of the blob in one record: leaves room for the headers in 16 bits of size.
const PART: usize = 60_000;
/// Most bytes of JSON that are read.
const MAX_JSON: u64 = 256 << 20;
const LEVEL: i32 = 3;

/// The blob.
///
/// # Errors
/// Paths that are no UTF-8 have no JSON.
pub(crate) fn encode(definitions: &Definitions) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_vec(definitions)?;
    let frame = zstd::bulk::compress(&json, LEVEL)?;
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

/// The blob from the records that `data`, the first bytes of the data, begins with. `None` if there is no whole one.
pub(crate) fn from_records(data: &[u8]) -> Option<Vec<u8>> {
    let mut blob = Vec::new();
    for (number, record) in Records::new(data).enumerate() {
        if record.kind != RecordType::HEADER_EVENT_TYPE {
            return None;
        }
        let mut cursor = Cursor::new(record.body);
        if cursor.take(8)? != PART_MAGIC.as_slice() || cursor.u32()? as usize != number {
            return None;
        }
        let count = cursor.u32()? as usize;
        let len = cursor.u32()? as usize;
        cursor.u32()?;
        blob.extend_from_slice(cursor.take(len)?);
        if number + 1 == count {
            return Some(blob);
        }
    }
    None
}

/// Definitions from the blob.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn decode(blob: &[u8]) -> Result<Definitions, String> {
    let (json_len, frame) =
        frame(blob).ok_or("the probe definitions are cut or their checksum does not fit")?;
    if json_len > MAX_JSON {
        return Err(format!(
            "the probe definitions claim {json_len} bytes, more than {MAX_JSON}"
        ));
    }
    let mut json = Vec::new();
    zstd::stream::read::Decoder::with_buffer(frame)
        .and_then(|decoder| decoder.take(json_len + 1).read_to_end(&mut json))
        .map_err(|error| format!("the probe definitions do not decompress: {error}"))?;
    serde_json::from_slice(&json)
        .map_err(|error| format!("the probe definitions are not understood: {error}"))
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

//! The encoding of the probe definitions in a trace.
//!
//! The blob is stored in the `VERSION` feature section after the string, where `perf inject` keeps it, and a second time at the start of
//! the data, split into type-65 records, for pipes and for files whose feature table is lost. When events were added, the `VERSION` section is
//! in the data, and the blob that follows its string is in such records once.
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
//! Payload of a record, with sizes in bytes: `USDTPART` (8), number of the part from 0 (4), number of parts (4), length (4), 0 (4), the
//! part.

use std::borrow::Cow;
use std::io;

use super::chunk::RECORD_HEADER;
use super::codec;
use super::codec::IoCause;
use super::footer::put_ignored_record;
use super::limits::{self, Limit, LimitExceeded};
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::definitions::Definitions;
use crate::perf::cursor::Cursor;
use crate::perf::{RawRecord, RecordType, Records};

const MAGIC: [u8; 8] = *b"USDTDEFS";
const VERSION: u32 = 1;
/// Begins each part of a blob in records.
pub(crate) type PartMagic = [u8; 8];
/// Magic of definitions.
pub(crate) const PART_MAGIC: PartMagic = *b"USDTPART";
/// Magic of an [`added_piece`](super::added_piece).
pub(crate) const MORE_MAGIC: PartMagic = *b"USDTMORE";
/// Maximum number of bytes of the blob in one record, whose total size is a `u16`.
const PART: usize = 60_000;
/// Maximum length of the JSON, and of the blob, bytes.
const MAX_JSON: u64 = Limit::Definitions.max();
/// Maximum compression ratio of the frame. Actual ratios are 5 to 50.
const MAX_RATIO: u64 = 1024;
/// Length of JSON that is accepted at any compression ratio, bytes.
const SMALL_JSON: u64 = 1 << 20;

/// Encodes the definitions as a blob. That they are within the limits is known.
///
/// # Errors
/// Errors of serialization and of zstd.
pub(crate) fn encode(definitions: &Definitions) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(definitions)?;
    let frame = compress(&json)?;
    let mut blob = MAGIC.to_vec();
    blob.extend(VERSION.to_le_bytes());
    blob.extend(crc32fast::hash(&frame).to_le_bytes());
    blob.extend((json.len() as u64).to_le_bytes());
    blob.extend((frame.len() as u64).to_le_bytes());
    blob.extend(frame);
    Ok(blob)
}

/// Compresses what readers take of a frame of its length.
///
/// # Errors
/// zstd's.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let frame = codec::compress(bytes)?;
    let is_believed = bytes.len() as u64 <= max_content(frame.len() as u64);
    Ok(if is_believed {
        frame
    } else {
        codec::store(bytes)
    })
}

/// Appends the blob, split into records.
pub(crate) fn put_records(magic: PartMagic, blob: &[u8], out: &mut Vec<u8>) {
    let parts = blob.chunks(PART);
    let count = parts.len() as u32;
    for (number, part) in parts.enumerate() {
        put_ignored_record(out, |out| {
            out.extend(magic);
            out.extend((number as u32).to_le_bytes());
            out.extend(count.to_le_bytes());
            out.extend((part.len() as u32).to_le_bytes());
            out.extend([0; 4]);
            out.extend_from_slice(part);
        });
    }
}

/// Reads the blob from the records at a file offset; `None` if it is missing or incomplete.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read_records(
    source: &TraceFiles,
    mut at: u64,
    magic: PartMagic,
) -> Result<Option<Vec<u8>>, ReadError> {
    let mut parts = Parts::new(magic);
    let mut bytes = Vec::new();
    loop {
        source.read_record(at, &mut bytes)?;
        let Some(record) = Records::new(&bytes).next() else {
            return Ok(None);
        };
        if let Some(blob) = parts.take(&record) {
            return Ok(Some(blob));
        }
        if parts.next == 0 {
            return Ok(None);
        }
        at += (RECORD_HEADER + record.body.len()) as u64;
    }
}

/// Reassembles a blob from its records.
#[derive(Debug)]
pub(crate) struct Parts {
    magic: PartMagic,
    blob: Vec<u8>,
    /// Number of the next part.
    next: u32,
}

impl Default for Parts {
    fn default() -> Self {
        Self::new(PART_MAGIC)
    }
}

impl Parts {
    const fn new(magic: PartMagic) -> Self {
        Self {
            magic,
            blob: Vec::new(),
            next: 0,
        }
    }

    /// Adds a record if it has the next part, or the first one of another blob. Returns the blob after the last part.
    pub(crate) fn take(&mut self, record: &RawRecord<'_>) -> Option<Vec<u8>> {
        let part = Part::parse(record, self.magic);
        let Some(part) = part.filter(|part| [0, self.next].contains(&part.number)) else {
            self.next = 0;
            return None;
        };
        if part.number == 0 {
            self.blob.clear();
        }
        if self.blob.len() as u64 > MAX_JSON {
            return None;
        }
        self.blob.extend_from_slice(part.bytes);
        self.next = part.number + 1;
        (self.next == part.count).then(|| {
            self.next = 0;
            std::mem::take(&mut self.blob)
        })
    }
}

/// A part of a blob.
struct Part<'a> {
    /// Its number, from 0.
    number: u32,
    /// Number of parts.
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// The part in a record; `None` if the record has none.
    fn parse(record: &RawRecord<'a>, magic: PartMagic) -> Option<Self> {
        if record.kind != RecordType::HEADER_EVENT_TYPE || !record.body.starts_with(&magic) {
            return None;
        }
        let mut cursor = Cursor::new(record.body);
        cursor.take(magic.len())?;
        let (number, count) = (cursor.u32()?, cursor.u32()?);
        let len = cursor.u32()? as usize;
        cursor.u32()?;
        Some(Self {
            number,
            count,
            bytes: cursor.take(len)?,
        })
    }
}

/// Whether the payload of a record of type 65 is a part of a blob.
pub(crate) fn is_part(payload: &[u8]) -> bool {
    payload.starts_with(&PART_MAGIC) || payload.starts_with(&MORE_MAGIC)
}

/// The blob that follows the string in the `VERSION` section: as it is, or in its records, which the rest of the string's record precedes.
/// Empty if there is none.
pub(crate) fn blob_of_section(rest: &[u8]) -> Cow<'_, [u8]> {
    if is_blob(rest) {
        return Cow::Borrowed(rest);
    }
    let records = rest.get(rest.len() % RECORD_HEADER..).unwrap_or_default();
    let mut parts = Parts::default();
    let blob = Records::new(records).find_map(|record| parts.take(&record));
    Cow::Owned(blob.unwrap_or_default())
}

/// Why the definitions of a trace cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionsError {
    /// The blob is cut, or is not what was written.
    #[error("the probe definitions are cut or their checksum does not match")]
    Checksum,
    /// The frame claims more content than a frame of its length has, bytes.
    #[error(
        "the probe definitions: expected at most {max} bytes in a frame of {frame}, found {found}"
    )]
    Length {
        /// The most that a frame of its length has.
        max: u64,
        /// Length of the frame.
        frame: usize,
        /// Length of the content, by the blob.
        found: u64,
    },
    /// The frame is not one of zstd.
    #[error("the probe definitions cannot be decompressed: {0}")]
    Codec(IoCause),
    /// There are more of something than a recorder writes.
    #[error("the probe definitions: {0}")]
    TooMany(#[from] LimitExceeded),
    /// The JSON is not that of definitions.
    #[error("the probe definitions cannot be parsed: {message}")]
    Json {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// The error, with its position.
        message: String,
    },
}

impl From<serde_json::Error> for DefinitionsError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json {
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        }
    }
}

/// Decodes the definitions from a blob.
///
/// # Errors
/// [`DefinitionsError`].
pub(crate) fn decode(blob: &[u8]) -> Result<Definitions, DefinitionsError> {
    let (found, frame) = frame(blob).ok_or(DefinitionsError::Checksum)?;
    let max = max_json(frame);
    if found > max {
        let frame = frame.len();
        return Err(DefinitionsError::Length { max, frame, found });
    }
    let json = codec::decompress(frame, found + 1)
        .map_err(|error| DefinitionsError::Codec(error.into()))?;
    parse(&json)
}

/// The most bytes of JSON that a frame has.
fn max_json(frame: &[u8]) -> u64 {
    MAX_JSON.min(max_content(frame.len() as u64))
}

/// Maximum length of content, bytes, that a frame of this length may claim.
pub(crate) const fn max_content(frame: u64) -> u64 {
    SMALL_JSON.saturating_add(MAX_RATIO.saturating_mul(frame))
}

/// Parses the definitions' JSON. The number of values is checked first, because parsed definitions take up to 50 times the memory of the
/// JSON.
fn parse(json: &[u8]) -> Result<Definitions, DefinitionsError> {
    Limit::Values.check(limits::values(json))?;
    let definitions: Definitions = serde_json::from_slice(json)?;
    let arguments = definitions.probes.iter().map(limits::arguments);
    Limit::Arguments.check(arguments.fold(0, usize::saturating_add) as u64)?;
    Ok(definitions)
}

/// The length of the JSON, and the frame; `None` if the blob is cut or its checksum does not match.
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

/// Whether `bytes` start with a blob.
fn is_blob(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

//! The names of functions in stacks, after the end of a trace.
//!
//! They are found after the recording has ended, and appended after the last node of the index, where neither perf nor an older usdtrec
//! reads:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTCODE` |
//! | 8 | 4 | version of this table: 1 |
//! | 12 | 4 | CRC-32 (IEEE) of the rest |
//! | 16 | 8 | length of the JSON, bytes |
//! | 24 | 8 | length of the zstd frame, bytes |
//! | 32 | | zstd frame of the JSON of [`CodeNames`] |
//!
//! The magic is written last. So a file whose writer was killed has no names, and nothing else is missing.
//!
//! The names are not flushed to disk: after a power failure they may be missing.

use std::io;

use super::codec;
use super::definitions_record::{compress, max_content};
use super::limits;
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::code_names::CodeNames;
use crate::perf::cursor::Cursor;

/// Magic bytes.
pub(crate) const MAGIC: [u8; 8] = *b"USDTCODE";
const VERSION: u32 = 1;
/// Size of the header, bytes.
const HEAD: usize = 32;
/// Offset after the CRC.
const CRC_FROM: u64 = 16;
/// Maximum length of the JSON, and of the frame, bytes.
pub(crate) const MAX_JSON: u64 = 64 << 20;
/// Maximum number of values in the JSON: parsed they take up to ten times the memory.
pub(crate) const MAX_VALUES: u64 = 8 << 20;
/// Maximum length of the headers of a frame whose blocks are not compressed, bytes.
const HEADERS: u64 = 1 << 20;

/// Encoded names.
pub(crate) struct EncodedNames {
    pub(crate) section: Vec<u8>,
    /// Length of the JSON, bytes.
    pub(crate) json: u64,
    /// Whether readers take them.
    pub(crate) fits: bool,
}

/// Encodes names.
pub(crate) fn encode(names: &CodeNames) -> io::Result<EncodedNames> {
    let json = serde_json::to_vec(names)?;
    let frame = compress(&json)?;
    let mut rest = (json.len() as u64).to_le_bytes().to_vec();
    rest.extend((frame.len() as u64).to_le_bytes());
    rest.extend(frame);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(&rest).to_le_bytes());
    bytes.extend(rest);
    let len = json.len() as u64;
    Ok(EncodedNames {
        section: bytes,
        json: len,
        fits: len <= MAX_JSON && limits::values(&json) <= MAX_VALUES,
    })
}

/// The bytes after the end of the index.
pub(crate) enum AfterIndex {
    /// No names.
    Nothing,
    /// Names.
    Names(CodeNames),
    /// Names that cannot be read.
    Damaged,
}

/// Reads the names at the end of the index.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read(source: &TraceFiles, at: u64) -> Result<AfterIndex, ReadError> {
    let head = source.bytes(at, HEAD)?;
    if !head.starts_with(&MAGIC) {
        return Ok(AfterIndex::Nothing);
    }
    let Some(Head { crc, json, frame }) = Head::parse(&head) else {
        return Ok(AfterIndex::Damaged);
    };
    let rest = source.bytes(at + CRC_FROM, HEAD - CRC_FROM as usize + frame)?;
    let is_whole = crc32fast::hash(&rest) == crc;
    let bytes = rest.get(HEAD - CRC_FROM as usize..);
    let names = bytes.filter(|_| is_whole);
    let names = names.and_then(|frame| decode(frame, json));
    Ok(names.map_or(AfterIndex::Damaged, AfterIndex::Names))
}

/// The header of the section.
struct Head {
    crc: u32,
    /// Length of the JSON, bytes.
    json: u64,
    /// Length of the frame, bytes.
    frame: usize,
}

impl Head {
    /// `None` if it claims more than a recorder writes.
    fn parse(head: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(head.get(MAGIC.len()..)?);
        let (_version, crc) = (cursor.u32()?, cursor.u32()?);
        let (json, frame) = (cursor.u64()?, cursor.u64()?);
        let is_sound = json <= MAX_JSON.min(max_content(frame)) && frame <= MAX_JSON + HEADERS;
        is_sound.then_some(Self {
            crc,
            json,
            frame: usize::try_from(frame).ok()?,
        })
    }
}

fn decode(frame: &[u8], json: u64) -> Option<CodeNames> {
    let json = codec::decompress(frame, json + 1).ok()?;
    if limits::values(&json) > MAX_VALUES {
        return None;
    }
    serde_json::from_slice(&json).ok()
}

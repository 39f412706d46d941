//! A chunk: a run of whole records, compressed on its own.
//!
//! It is a type-81 record, which perf reads as one piece of compressed records:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 81, size |
//! | 8 | 4 | magic of a skippable zstd frame, 0x184D2A55 |
//! | 12 | 4 | length of the chunk header that follows: 40 |
//! | 16 | 4 | `USDC` |
//! | 20 | 2 | version: 1 |
//! | 22 | 2 | flags: bit 0 metadata (records other than samples) |
//! | 24 | 4 | CRC-32 (IEEE) of all that follows in the record |
//! | 28 | 4 | length of the records, bytes, at most 1 MiB |
//! | 32 | 4 | records |
//! | 36 | 4 | samples among them |
//! | 40 | 8 | earliest time, ns; 0 if there is none |
//! | 48 | 8 | latest time, ns; 0 if there is none |
//! | 56 | | one zstd frame with checksum |
//!
//! The skippable frame stands first because perf 6.1 mishandles one behind the data. A later version may lengthen the
//! chunk header: the frame begins behind the length that is told.

use super::tally::Tally;
use crate::perf::RecordType;
use crate::perf::cursor::Cursor;

/// Most bytes of records in a chunk or block; also perf's room for one decompressed record (`COMPRESSED`'s last field).
pub(crate) const MAX_RAW: usize = 1 << 20;
/// Bytes of a record header.
pub(crate) const RECORD_HEADER: usize = 8;

const SKIPPABLE_MAGIC: u32 = 0x184D_2A55;
const SKIPPABLE_HEADER: usize = 8;
const MAGIC: [u8; 4] = *b"USDC";
const VERSION: u16 = 1;
const METADATA: u16 = 1;
const HEADER: usize = 40;
/// Offset, in a record's bytes, behind the CRC.
const CRC_FROM: usize = 28;

/// Bytes before the zstd frame.
pub(crate) const FRAME_AT: usize = RECORD_HEADER + SKIPPABLE_HEADER + HEADER;
/// Most bytes of a zstd frame in a chunk.
pub(crate) const MAX_FRAME: usize = u16::MAX as usize - FRAME_AT;

/// The chunk header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    /// Whether it holds records other than samples, and none of those.
    pub(crate) metadata: bool,
    /// Length of the records, bytes.
    pub(crate) raw_len: u32,
    /// Its records.
    pub(crate) tally: Tally,
    crc: u32,
    frame_at: usize,
}

/// Appends a chunk.
pub(crate) fn put_chunk(
    metadata: bool,
    raw_len: usize,
    tally: &Tally,
    frame: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend(RecordType::COMPRESSED.0.to_le_bytes());
    out.extend([0; 2]);
    out.extend(((FRAME_AT + frame.len()) as u16).to_le_bytes());
    out.extend(SKIPPABLE_MAGIC.to_le_bytes());
    out.extend((HEADER as u32).to_le_bytes());
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((if metadata { METADATA } else { 0 }).to_le_bytes());
    let crc_at = out.len();
    out.extend([0; 4]);
    out.extend((raw_len as u32).to_le_bytes());
    out.extend(tally.records.to_le_bytes());
    out.extend(tally.samples.to_le_bytes());
    let (earliest, latest) = tally.time().unwrap_or_default();
    out.extend(earliest.to_le_bytes());
    out.extend(latest.to_le_bytes());
    out.extend_from_slice(frame);
    let crc = crc32fast::hash(&out[start + CRC_FROM..]);
    out[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
}

impl ChunkHeader {
    /// Parses the first [`FRAME_AT`] bytes of a record. `None` if it is no chunk of ours or says what cannot be.
    pub(crate) fn parse(record: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(record);
        if cursor.u32()? != RecordType::COMPRESSED.0 {
            return None;
        }
        cursor.u16()?;
        let size = usize::from(cursor.u16()?);
        if cursor.u32()? != SKIPPABLE_MAGIC {
            return None;
        }
        let header = cursor.u32()? as usize;
        if header < HEADER || cursor.take(4)? != MAGIC.as_slice() {
            return None;
        }
        cursor.u16()?;
        let flags = cursor.u16()?;
        let crc = cursor.u32()?;
        let raw_len = cursor.u32()?;
        let (records, samples) = (cursor.u32()?, cursor.u32()?);
        let time = (cursor.u64()?, cursor.u64()?);
        let frame_at = RECORD_HEADER + SKIPPABLE_HEADER + header;
        (frame_at < size && raw_len as usize <= MAX_RAW).then(|| Self {
            metadata: flags & METADATA != 0,
            raw_len,
            tally: Tally::from_parts(records, samples, time),
            crc,
            frame_at,
        })
    }

    /// The zstd frame of the whole record; `None` if the CRC does not fit.
    pub(crate) fn frame<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let crc = crc32fast::hash(record.get(CRC_FROM..)?);
        (crc == self.crc)
            .then(|| record.get(self.frame_at..))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips_and_any_flip_behind_the_record_header_shows() {
        let mut tally = Tally::default();
        tally.count(true, 50);
        tally.count(true, 0);
        tally.count(true, 40);
        let mut chunk = Vec::new();
        put_chunk(true, 1000, &tally, b"frame", &mut chunk);
        assert_eq!(chunk.len(), FRAME_AT + 5);
        let header = ChunkHeader::parse(&chunk).unwrap();
        assert!(header.metadata);
        assert_eq!(header.raw_len, 1000);
        assert_eq!(header.tally, tally);
        assert_eq!(header.tally.time(), Some((40, 50)));
        assert_eq!(header.frame(&chunk), Some(b"frame".as_slice()));
        for at in 24..chunk.len() {
            let mut flipped = chunk.clone();
            flipped[at] ^= 1;
            let frame = ChunkHeader::parse(&flipped).and_then(|header| header.frame(&flipped));
            assert_eq!(frame, None, "byte {at}");
        }
    }
}

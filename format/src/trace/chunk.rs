//! Chunks: runs of whole records, each compressed independently.
//!
//! A chunk is a type-81 record (`PERF_RECORD_COMPRESSED`):
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 81, size |
//! | 8 | 4 | magic of a skippable zstd frame, 0x184D2A55 |
//! | 12 | 4 | length of the chunk header that follows: 40 |
//! | 16 | 4 | `USDC` |
//! | 20 | 2 | version: 1 |
//! | 22 | 2 | flags: bit 0 metadata (records other than samples) |
//! | 24 | 4 | CRC-32 (IEEE) of the rest of the record |
//! | 28 | 4 | length of the records, bytes, at most 1 MiB |
//! | 32 | 4 | number of records |
//! | 36 | 4 | number of samples among them |
//! | 40 | 8 | earliest time, ns; 0 if no record has a time |
//! | 48 | 8 | latest time, ns; 0 if no record has a time |
//! | 56 | | one zstd frame with checksum |
//!
//! The skippable frame comes first because perf 6.1 mishandles one after the data. A later version may have a longer chunk header:
//! readers find the zstd frame by the length at offset 12.
//!
//! perf's own `-z` is one zstd stream for the whole file: it is read serially, and is lost from the first damage on.
//! Here a reader plans from the chunk headers and decodes chunks in parallel, and damage affects only its chunk.
//!
//! Samples and other records never share a chunk. A report first reads the few chunks of COMM, FORK, EXIT and MMAP2
//! records and builds an immutable table of names. Then it decodes chunks of samples in any order, on all CPUs.

use super::record_counts::RecordCounts;
use super::time_range::TimeRange;
use crate::perf::RecordType;
use crate::perf::cursor::Cursor;

/// Maximum length of the records in a chunk or block, bytes; also the size of perf's decompression buffer (last field of `COMPRESSED`).
pub(crate) const MAX_RAW: usize = 1 << 20;
/// Size of a record header, bytes.
pub(crate) const RECORD_HEADER: usize = 8;

const SKIPPABLE_MAGIC: u32 = 0x184D_2A55;
const SKIPPABLE_HEADER: usize = 8;
const MAGIC: [u8; 4] = *b"USDC";
const VERSION: u16 = 1;
const METADATA: u16 = 1;
const HEADER: usize = 40;
/// Offset after the CRC, from the start of the record.
const CRC_FROM: usize = 28;

/// Offset of the zstd frame, from the start of the record.
pub(crate) const FRAME_AT: usize = RECORD_HEADER + SKIPPABLE_HEADER + HEADER;
/// Maximum length of a zstd frame in a chunk, bytes.
pub(crate) const MAX_FRAME: usize = u16::MAX as usize - FRAME_AT;

/// The chunk header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    /// Whether the records are metadata (anything but samples). A chunk never has both.
    pub(crate) metadata: bool,
    /// Length of the records, bytes.
    pub(crate) raw_len: u32,
    /// Counts of the records.
    pub(crate) counts: RecordCounts,
    crc: u32,
    frame_at: usize,
}

/// Appends a chunk.
pub(crate) fn put_chunk(
    metadata: bool,
    raw_len: usize,
    counts: &RecordCounts,
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
    out.extend(counts.records.to_le_bytes());
    out.extend(counts.samples.to_le_bytes());
    let TimeRange { first, last } = counts.time().unwrap_or_default();
    out.extend(first.to_le_bytes());
    out.extend(last.to_le_bytes());
    out.extend_from_slice(frame);
    let crc = crc32fast::hash(&out[start + CRC_FROM..]);
    out[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
}

impl ChunkHeader {
    /// Parses the first [`FRAME_AT`] bytes of a record; `None` if it is not a valid chunk.
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
        let time = TimeRange::take(&mut cursor)?;
        let frame_at = RECORD_HEADER + SKIPPABLE_HEADER + header;
        (frame_at < size && raw_len as usize <= MAX_RAW).then(|| Self {
            metadata: flags & METADATA != 0,
            raw_len,
            counts: RecordCounts::from_parts(records, samples, time),
            crc,
            frame_at,
        })
    }

    /// The zstd frame of the whole record; `None` if the CRC does not match.
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
        let mut counts = RecordCounts::default();
        counts.count(true, 50);
        counts.count(true, 0);
        counts.count(true, 40);
        let mut chunk = Vec::new();
        put_chunk(true, 1000, &counts, b"frame", &mut chunk);
        assert_eq!(chunk.len(), FRAME_AT + 5);
        let header = ChunkHeader::parse(&chunk).unwrap();
        assert!(header.metadata);
        assert_eq!(header.raw_len, 1000);
        assert_eq!(header.counts, counts);
        assert_eq!(header.counts.time(), Some(TimeRange::new(40, 50)));
        assert_eq!(header.frame(&chunk), Some(b"frame".as_slice()));
        for at in 24..chunk.len() {
            let mut flipped = chunk.clone();
            flipped[at] ^= 1;
            let frame = ChunkHeader::parse(&flipped).and_then(|header| header.frame(&flipped));
            assert_eq!(frame, None, "byte {at}");
        }
    }
}

//! Digests: copies of the metadata of many flushes in one record.
//!
//! A recording of hours has tens of thousands of small blocks of process records. A reader of a time slice needs all of them up to the
//! slice, and reading them one by one takes longer than reading the slice. A digest is a record of type 65, which perf ignores, with the
//! metadata of about [`BLOCKS`] flushes. The blocks themselves are kept: a reader without a digest reads them.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTDGST` |
//! | 8 | 4 | CRC-32 (IEEE) of the rest of the digest |
//! | 12 | 4 | length of the zstd frame, bytes |
//! | 16 | 8 | file offset of the previous digest; 0 if there is none |
//! | 24 | 8 | file offset of the first metadata block in the digest |
//! | 32 | 8 | file offset after the last one; the digest has all metadata blocks between the two |
//! | 40 | 4 | length of the records, bytes |
//! | 44 | 4 | 0 |
//! | 48 | | zstd frame of the records, in the order of their blocks |
//!
//! Each node of the [`index`](super::index) has the offset of the newest digest.
//!
//! If a digest is damaged, the blocks are read instead.

use std::ops::Range;

use super::codec::{self, FrameDecompressor};
use super::footer::put_ignored_record;
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::perf::cursor::Cursor;

const MAGIC: [u8; 8] = *b"USDTDGST";
/// Size of the header, bytes.
const HEAD: usize = 48;
/// Offset after the CRC.
const CRC_FROM: usize = 12;
/// Number of blocks after which a digest is written. On average, half as many are in no digest yet.
const BLOCKS: usize = 128;
/// Length of records after which a digest is written earlier, bytes.
const FULL: usize = 192 << 10;
/// Flushes with more metadata than this are not copied into a digest, bytes.
const LARGE: usize = 32 << 10;
/// Maximum length of the frame, bytes, so that it fits into a record with its header.
const MAX_FRAME: usize = 60_000;
/// Maximum length of the records, bytes.
const MAX_RECORDS: usize = FULL + LARGE;

/// A copy of the metadata blocks in a range of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// File offset.
    pub(crate) at: u64,
    /// Range of file offsets; the digest has all metadata blocks that begin in it.
    pub(crate) covers: Range<u64>,
    previous: u64,
    crc: u32,
    frame_len: usize,
    records_len: usize,
}

impl Digest {
    /// Range of file offsets. The digest has all metadata blocks that begin in it; the first one begins at its start.
    #[must_use]
    pub fn covers(&self) -> Range<u64> {
        self.covers.clone()
    }

    /// The digest in a file whose first byte has an offset.
    pub(crate) fn moved(self, base: u64) -> Self {
        let Range { start, end } = self.covers;
        Self {
            at: self.at.saturating_add(base),
            covers: start.saturating_add(base)..end.saturating_add(base),
            ..self
        }
    }

    /// Parses the header; `None` if it is not a valid digest.
    fn parse(head: &[u8], at: u64) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        if cursor.take(8)? != MAGIC.as_slice() {
            return None;
        }
        let (crc, frame_len) = (cursor.u32()?, cursor.u32()? as usize);
        let previous = cursor.u64()?;
        let covers = cursor.u64()?..cursor.u64()?;
        let records_len = cursor.u32()? as usize;
        let sound = frame_len <= MAX_FRAME
            && records_len <= MAX_RECORDS
            && previous < at
            && covers.start < covers.end
            && covers.end <= at;
        sound.then_some(Self {
            at,
            covers,
            previous,
            crc,
            frame_len,
            records_len,
        })
    }

    /// Replaces the content of `out` by the records. `packed` is a buffer. `None` if the digest is damaged.
    pub(crate) fn read(
        &self,
        source: &TraceFiles,
        frames: &mut FrameDecompressor,
        packed: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        source.read(self.at, HEAD + self.frame_len, packed).ok()?;
        if crc32fast::hash(packed.get(CRC_FROM..)?) != self.crc {
            return None;
        }
        let frame = packed.get(HEAD..)?;
        frames.decompress(frame, self.records_len, out).ok()
    }
}

/// Reads the digests in file order, given the offset of the newest. A damaged digest ends the list towards the start of the file. Each digest
/// must be before the one that refers to it.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn walk(source: &TraceFiles, newest_at: u64) -> Result<Vec<Digest>, ReadError> {
    let mut digests: Vec<Digest> = Vec::new();
    let mut at = newest_at;
    while at != 0 {
        let Some(digest) = Digest::parse(&source.bytes(at, HEAD)?, at) else {
            break;
        };
        let overlaps = |later: &Digest| later.covers.start < digest.covers.end;
        if digests.last().is_some_and(overlaps) {
            break;
        }
        at = digest.previous;
        digests.push(digest);
    }
    digests.reverse();
    Ok(digests)
}

/// The writer's copy of the metadata since the newest digest.
#[derive(Debug, Default)]
pub(crate) struct DigestTail {
    records: Vec<u8>,
    /// Number of blocks of the records.
    blocks: usize,
    covers: Option<Range<u64>>,
}

impl DigestTail {
    /// Appends a digest record if one is due, and returns its file offset. `at` is the file offset of the first byte of `out`, `previous`
    /// the offset of the newest digest.
    pub(crate) fn put(&self, at: u64, previous: u64, out: &mut Vec<u8>) -> Option<u64> {
        let covers = self.covers.clone().filter(|_| self.is_due())?;
        // Records that do not compress well enough are not copied.
        let frame = codec::compress(&self.records).ok();
        let frame = frame.filter(|frame| frame.len() <= MAX_FRAME)?;
        let payload = put_ignored_record(out, |out| {
            let start = out.len();
            out.extend(MAGIC);
            out.extend([0; 4]);
            out.extend((frame.len() as u32).to_le_bytes());
            out.extend(previous.to_le_bytes());
            out.extend(covers.start.to_le_bytes());
            out.extend(covers.end.to_le_bytes());
            out.extend((self.records.len() as u32).to_le_bytes());
            out.extend([0; 4]);
            out.extend(frame);
            let crc = crc32fast::hash(&out[start + CRC_FROM..]);
            out[start + 8..start + CRC_FROM].copy_from_slice(&crc.to_le_bytes());
        });
        Some(at + payload as u64)
    }

    /// Has the next digest begin after what was written.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.blocks = 0;
        self.covers = None;
    }

    /// Whether the next flush writes a digest.
    const fn is_due(&self) -> bool {
        self.blocks >= BLOCKS || self.records.len() >= FULL
    }

    /// Adds the metadata of a committed flush: the records, the number of their blocks, and the blocks' range in the file. Removes the
    /// metadata that a digest contains now.
    pub(crate) fn flushed(&mut self, records: &[u8], blocks: usize, range: Option<Range<u64>>) {
        if self.is_due() || records.len() > LARGE {
            self.clear();
        }
        let Some(range) = range.filter(|_| records.len() <= LARGE) else {
            return;
        };
        self.records.extend_from_slice(records);
        self.blocks += blocks;
        let start = self.covers.as_ref().map_or(range.start, |all| all.start);
        self.covers = Some(start..range.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file with a digest of some records, and where it is.
    fn written(records: &[u8]) -> (Vec<u8>, u64) {
        let mut tail = DigestTail::default();
        for (at, part) in records.chunks(16).enumerate() {
            let at = 100 * at as u64;
            tail.flushed(part, 1, Some(at..at + 100));
        }
        let mut out = Vec::new();
        let at = tail.put(1 << 20, 0, &mut out).unwrap();
        let mut file = vec![0; 1 << 20];
        file.extend(out);
        (file, at)
    }

    fn source(bytes: &[u8]) -> TraceFiles {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        TraceFiles::new(vec![file]).unwrap()
    }

    fn read(digest: &Digest, source: &TraceFiles) -> Option<Vec<u8>> {
        let mut records = Vec::new();
        let frames = &mut FrameDecompressor::default();
        digest.read(source, frames, &mut Vec::new(), &mut records)?;
        Some(records)
    }

    #[test]
    fn a_digest_round_trips_and_any_flip_shows() {
        let records: Vec<u8> = (0..BLOCKS * 16).map(|at| (at / 7) as u8).collect();
        let (file, at) = written(&records);
        let digests = walk(&source(&file), at).unwrap();
        let [digest] = digests.as_slice() else {
            panic!("{digests:?}");
        };
        assert_eq!(digest.covers, 0..100 * BLOCKS as u64);
        assert_eq!(read(digest, &source(&file)), Some(records));
        for flipped in at as usize..file.len() {
            let mut bytes = file.clone();
            bytes[flipped] ^= 0x10;
            let source = source(&bytes);
            let found = walk(&source, at).unwrap();
            let repeated = found.first().and_then(|digest| read(digest, &source));
            let padding = flipped >= at as usize + HEAD + digest.frame_len;
            assert_eq!(repeated.is_some(), padding, "byte {flipped}");
        }
    }

    #[test]
    fn little_and_much_is_left_where_it_is() {
        let mut tail = DigestTail::default();
        for at in 0..BLOCKS as u64 - 1 {
            tail.flushed(&[0; 8], 1, Some(at * 100..at * 100 + 50));
        }
        tail.flushed(&[], 0, None);
        assert_eq!(tail.put(1 << 20, 0, &mut Vec::new()), None);
        tail.flushed(&vec![0; LARGE + 8], 1, Some(50_000..60_000));
        for at in 700..700 + BLOCKS as u64 {
            tail.flushed(&[0; 8], 1, Some(at * 100..at * 100 + 50));
        }
        assert!(tail.put(1 << 20, 0, &mut Vec::new()).is_some());
        assert_eq!(
            tail.covers.as_ref().map(|covers| covers.start),
            Some(70_000)
        );
    }
}

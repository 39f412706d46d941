//! Digests: the metadata of many flushes once more in one place.
//!
//! A recording of hours has tens of thousands of small blocks of process records. Whoever wants a slice from its middle needs all
//! of them up to there; read one by one they cost more than the slice. So a record of type 65, which perf ignores, repeats the
//! metadata blocks of about [`BLOCKS`] flushes. They stay where they are: a reader that finds no digest reads them.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTDGST` |
//! | 8 | 4 | CRC-32 (IEEE) of all that follows |
//! | 12 | 4 | length of the zstd frame, bytes |
//! | 16 | 8 | file offset of the digest before; 0 if there is none |
//! | 24 | 8 | file offset of the first metadata block that is in it |
//! | 32 | 8 | file offset behind the last one: all metadata blocks between the two are in it |
//! | 40 | 4 | length of the records, bytes |
//! | 44 | 4 | 0 |
//! | 48 | | zstd frame of the records, in the order of their blocks |
//!
//! Each node of the [`index`](super::index) says where the newest one is.

use std::io;
use std::ops::Range;

use super::codec::{self, FrameDecompressor};
use super::footer::put_ignored_record;
use super::source::Source;
use crate::perf::cursor::Cursor;

const MAGIC: [u8; 8] = *b"USDTDGST";
/// Bytes before the frame.
const HEAD: usize = 48;
/// Offset behind the CRC.
const CRC_FROM: usize = 12;
/// Blocks after which a digest is written: a reader finds half as many that are in none.
const BLOCKS: usize = 128;
/// Bytes of records after which one is written earlier.
const FULL: usize = 192 << 10;
/// Bytes of metadata in one flush that are worth a read of their own.
const LARGE: usize = 32 << 10;
/// Longest frame: with its head it must fit a record.
const MAX_FRAME: usize = 60_000;
/// Longest records.
const MAX_RECORDS: usize = FULL + LARGE;

/// The metadata of blocks that stand between two places of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// File offset.
    pub(crate) at: u64,
    /// File offsets of the blocks: all metadata blocks that begin here are in it.
    pub(crate) covers: Range<u64>,
    previous: u64,
    crc: u32,
    frame_len: usize,
    records_len: usize,
}

impl Digest {
    /// File offsets: the metadata blocks that begin between them are in it, the first one at the first.
    #[must_use]
    pub fn covers(&self) -> Range<u64> {
        self.covers.clone()
    }

    /// Parses the head. `None` if it is none or claims what cannot be.
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

    /// Replaces `out` by its records, and `packed` by what they are in. `None` if it is damaged: then the blocks have to be read.
    pub(crate) fn read(
        &self,
        source: &Source,
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

/// The digests from the newest one, at a file offset, to the first; the first one first. One that is damaged hides those before
/// it. Each must lie before the one that names it.
///
/// # Errors
/// The system call's.
pub(crate) fn walk(source: &Source, newest_at: u64) -> io::Result<Vec<Digest>> {
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

/// The metadata since the newest digest, as the writer keeps it.
#[derive(Debug, Default)]
pub(crate) struct DigestTail {
    records: Vec<u8>,
    /// Blocks that they are in.
    blocks: usize,
    covers: Option<Range<u64>>,
}

impl DigestTail {
    /// Appends a digest as a record if there is enough for one. `at` is the file offset of `out`'s first byte, `previous` that of
    /// the newest digest. Returns its offset.
    pub(crate) fn put(&self, at: u64, previous: u64, out: &mut Vec<u8>) -> Option<u64> {
        let covers = self.covers.clone().filter(|_| self.is_due())?;
        // What does not compress is left where it is.
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

    /// Whether the next flush writes one.
    const fn is_due(&self) -> bool {
        self.blocks >= BLOCKS || self.records.len() >= FULL
    }

    /// Takes the metadata of a flush that is in the file, and where its blocks are; forgets what is in a digest now.
    pub(crate) fn flushed(&mut self, records: &[u8], blocks: usize, place: Option<Range<u64>>) {
        if self.is_due() || records.len() > LARGE {
            self.records.clear();
            self.blocks = 0;
            self.covers = None;
        }
        let Some(place) = place.filter(|_| records.len() <= LARGE) else {
            return;
        };
        self.records.extend_from_slice(records);
        self.blocks += blocks;
        let start = self.covers.as_ref().map_or(place.start, |all| all.start);
        self.covers = Some(start..place.end);
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

    fn source(bytes: &[u8]) -> Source {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Source::new(vec![file]).unwrap()
    }

    fn read(digest: &Digest, source: &Source) -> Option<Vec<u8>> {
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

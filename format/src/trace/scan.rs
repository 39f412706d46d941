//! Finding the blocks by walking the record headers, where there is no index: files of other programs, and files of ours
//! that were cut or damaged.
//!
//! Nothing is decompressed: a chunk says in its header what it holds.

use std::io;
use std::ops::Range;

use super::block::{Block, BlockKind};
use super::chunk::{ChunkHeader, FRAME_AT, RECORD_HEADER};
use super::damage::Damage;
use super::source::Source;
use super::tally::Tally;
use super::window::Window;
use crate::perf::RecordType;

/// Bytes after which a plain block ends.
const PLAIN_BLOCK: u64 = 1 << 20;
/// Bytes after which a block of compressed pieces ends.
const STREAM_BLOCK: u64 = 64 << 10;
/// Bytes looked at in one step when searching for the next chunk.
const SEARCH: usize = 1 << 16;

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Blocks in file order.
    pub(crate) blocks: Vec<Block>,
    /// What was wrong.
    pub(crate) damage: Vec<Damage>,
    /// File offset of the payload of the last type-65 record.
    pub(crate) last_ignored: Option<u64>,
}

/// How a walk treats the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanRules {
    /// Offset of the time in a record of type SAMPLE, header included, if it is the same in all.
    pub(crate) time_at: Option<usize>,
    /// Whether the bytes end because the file was cut, and not where the writer said that they end.
    pub(crate) cut: bool,
    /// Whether it is a pipe's stream, in which the bytes of type 66 stand behind the record.
    pub(crate) pipe: bool,
}

/// Walks the records of a part of the file.
///
/// # Errors
/// The system call's.
pub(crate) fn scan(source: &Source, part: Range<u64>, rules: ScanRules) -> io::Result<Scan> {
    let mut walk = Walk {
        window: Window::new(source),
        end: part.end.min(source.len()),
        rules,
        open: None,
        tally: Tally::default(),
        found: Scan::default(),
    };
    let mut at = part.start;
    while at < walk.end {
        at = match walk.step(at)? {
            Step::To(next) => next,
            Step::Broken(what) => {
                walk.close(at);
                walk.search(at, what)?
            }
        };
    }
    walk.close(walk.end.max(part.start));
    Ok(walk.found)
}

enum Step {
    /// File offset of the next record.
    To(u64),
    /// No record, and why.
    Broken(String),
}

struct Walk<'a> {
    window: Window<'a>,
    end: u64,
    rules: ScanRules,
    /// Kind and file offset of the block that is being collected.
    open: Option<(BlockKind, u64)>,
    /// Records of the plain block that is being collected.
    tally: Tally,
    found: Scan,
}

impl Walk<'_> {
    fn step(&mut self, at: u64) -> io::Result<Step> {
        let there = (self.end - at).min(FRAME_AT as u64) as usize;
        let bytes = self.window.peek(at, there)?;
        let Some((kind, size)) = record_header(bytes) else {
            return Ok(Step::Broken("a record header is cut".to_owned()));
        };
        if size < RECORD_HEADER as u64 {
            let what = format!("expected a record header, found size {size}");
            return Ok(Step::Broken(what));
        }
        let next = at + size;
        if next > self.end {
            return Ok(self.over_the_end(at, kind, size));
        }
        match kind {
            RecordType::COMPRESSED => match ChunkHeader::parse(bytes) {
                Some(header) => self.chunk(at, size, &header),
                None => self.collect(BlockKind::Stream, at, next, STREAM_BLOCK),
            },
            RecordType::COMPRESSED2 => self.collect(BlockKind::Stream, at, next, STREAM_BLOCK),
            RecordType::HEADER_TRACING_DATA if self.rules.pipe => {
                let len = bytes
                    .get(RECORD_HEADER..)
                    .and_then(|body| body.first_chunk());
                let len = len.map_or(0, |len| u32::from_le_bytes(*len));
                self.close(at);
                return Ok(Step::To(next + u64::from(len)));
            }
            RecordType::HEADER_EVENT_TYPE => {
                self.found.last_ignored = Some(at + RECORD_HEADER as u64);
                self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK);
            }
            RecordType::FINISHED_ROUND => self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK),
            _ => {
                self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK);
                self.count(at, kind)?;
            }
        }
        Ok(Step::To(next))
    }

    /// A record that reaches over the end: the footer's, whose first bytes end the data, or one that was cut.
    fn over_the_end(&mut self, at: u64, kind: RecordType, size: u64) -> Step {
        let footer = kind == RecordType::HEADER_EVENT_TYPE && at + RECORD_HEADER as u64 == self.end;
        if footer && !self.rules.cut {
            self.found.last_ignored = Some(self.end);
            self.close(at);
            return Step::To(self.end);
        }
        Step::Broken(format!(
            "a record of {size} bytes reaches over the end at offset {}",
            self.end
        ))
    }

    fn chunk(&mut self, at: u64, size: u64, header: &ChunkHeader) {
        self.close(at);
        self.found.blocks.push(Block {
            kind: BlockKind::Chunk,
            offset: at,
            len: size,
            raw_len: header.raw_len,
            samples: Some(header.tally.samples),
            time: header.tally.time(),
            metadata: header.metadata,
        });
    }

    /// Adds a record to the open block of its kind.
    fn collect(&mut self, kind: BlockKind, at: u64, next: u64, most: u64) {
        match self.open {
            Some((open, start)) if open == kind && next - start <= most => {}
            _ => {
                self.close(at);
                self.open = Some((kind, at));
            }
        }
    }

    fn count(&mut self, at: u64, kind: RecordType) -> io::Result<()> {
        let sample = kind == RecordType::SAMPLE;
        let time = match self.rules.time_at {
            Some(time_at) if sample => {
                let there = (self.end - at).min(time_at as u64 + 8) as usize;
                let bytes = self.window.peek(at, there)?;
                let time = bytes.get(time_at..).and_then(|bytes| bytes.first_chunk());
                time.map_or(0, |time| u64::from_le_bytes(*time))
            }
            _ => 0,
        };
        self.tally.count(sample, time);
        Ok(())
    }

    /// Ends the open block before `at`.
    fn close(&mut self, at: u64) {
        let tally = std::mem::take(&mut self.tally);
        let Some((kind, start)) = self.open.take() else {
            return;
        };
        let plain = kind == BlockKind::Plain;
        if plain && tally.records == 0 {
            // Footers and the ends of rounds, which say nothing to a reader of blocks.
            return;
        }
        let timed = plain && self.rules.time_at.is_some();
        self.found.blocks.push(Block {
            kind,
            offset: start,
            len: at - start,
            raw_len: if plain { (at - start) as u32 } else { 0 },
            samples: plain.then_some(tally.samples),
            time: tally.time().filter(|_| timed),
            metadata: !plain || tally.records != tally.samples,
        });
    }

    /// Looks for the next chunk behind bytes that are no record, and notes what was lost.
    fn search(&mut self, from: u64, what: String) -> io::Result<u64> {
        let next = self.next_chunk(from + 1)?;
        let message = match next {
            Some(next) => format!("{what}: {} bytes are lost", next - from),
            None if self.rules.cut => format!(
                "ends inside a record (recorder killed, or the file cut?): {}",
                self.whole()
            ),
            None => format!(
                "{what}: the {} bytes from here on are lost, {}",
                self.end - from,
                self.whole()
            ),
        };
        self.found.damage.push(Damage::lost(from, message));
        Ok(next.unwrap_or(self.end))
    }

    /// What was found so far, in words.
    fn whole(&self) -> String {
        let chunks = self
            .found
            .blocks
            .iter()
            .filter(|block| block.kind == BlockKind::Chunk);
        match chunks.count() {
            0 => "the records before it are whole".to_owned(),
            1 => "the chunk before it is whole".to_owned(),
            count => format!("the {count} chunks before it are whole"),
        }
    }

    fn next_chunk(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.end {
            let there = (self.end - at).min(SEARCH as u64) as usize;
            let bytes = self.window.peek(at, there)?;
            let found = (0..bytes.len())
                .find(|&start| is_chunk(&bytes[start..], self.end - at - start as u64));
            if let Some(start) = found {
                return Ok(Some(at + start as u64));
            }
            if bytes.len() <= FRAME_AT {
                break;
            }
            // A chunk header may lie across the end of what was looked at.
            at += (bytes.len() - FRAME_AT) as u64;
        }
        Ok(None)
    }
}

fn is_chunk(bytes: &[u8], room: u64) -> bool {
    bytes.first() == Some(&(RecordType::COMPRESSED.0 as u8))
        && ChunkHeader::parse(bytes).is_some()
        && record_header(bytes).is_some_and(|(_, size)| size <= room)
}

fn record_header(bytes: &[u8]) -> Option<(RecordType, u64)> {
    let header = u64::from_le_bytes(*bytes.first_chunk::<RECORD_HEADER>()?);
    Some((RecordType(header as u32), header >> 48))
}

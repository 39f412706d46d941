//! Finds the blocks of files without an index by scanning the record headers: files of other programs, and files that were cut or damaged.
//!
//! Nothing is decompressed: the header of a chunk describes its records.

use std::collections::VecDeque;
use std::ops::Range;

use super::block::{Block, BlockKind};
use super::chunk::{ChunkHeader, FRAME_AT, RECORD_HEADER};
use super::clock_readings::is_readings;
use super::damage::{Damage, DamageKind, NoRecord, WholeBefore};
use super::definitions_record;
use super::process_cgroup::is_of_processes;
use super::read_error::ReadError;
use super::record_counts::RecordCounts;
use super::trace_files::TraceFiles;
use super::window::Window;
use crate::perf::{RecordType, record_header};

/// Maximum length of a plain block, bytes.
const PLAIN_BLOCK: u64 = 1 << 20;
/// Maximum length of a block of compressed pieces, bytes.
const STREAM_BLOCK: u64 = 64 << 10;
/// Maximum number of records that may be footers. Records with parts of a head may look like footers.
const FOOTERS: usize = 256;
/// Step of the search for the next chunk, bytes.
const SEARCH: usize = 1 << 16;

/// The result of a scan.
#[derive(Debug, Default)]
pub(crate) struct ScannedRecords {
    /// Blocks in file order.
    pub(crate) blocks: Vec<Block>,
    /// Damage found.
    pub(crate) damage: Vec<Damage>,
    /// File offsets of the payloads of the last type-65 records that may be footers.
    pub(crate) footers: VecDeque<u64>,
    /// File offsets of records of the head in the data of a pipe.
    pub(crate) head_records: Vec<u64>,
    /// File offsets of the payloads of clock readings.
    pub(crate) clocks: Vec<u64>,
}

/// Parameters of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanRules {
    /// Offset of the time in a sample, from the record header, if it is the same in all samples.
    pub(crate) time_at: Option<usize>,
    /// Whether the part ends at the end of a file that was cut, instead of at the end that the header gives.
    pub(crate) cut: bool,
    /// Whether the trace is in pipe mode, in which data follow a record of type 66.
    pub(crate) pipe: bool,
}

/// Scans the records of a part of the file.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn scan(
    source: &TraceFiles,
    part: Range<u64>,
    rules: ScanRules,
) -> Result<ScannedRecords, ReadError> {
    let mut walk = Scanner {
        window: Window::new(source),
        end: part.end.min(source.len()),
        rules,
        open: None,
        counts: RecordCounts::default(),
        found: ScannedRecords::default(),
    };
    let mut at = part.start;
    while at < walk.end {
        at = match walk.step(at)? {
            ScanStep::To(next) => next,
            ScanStep::Broken(reason) => {
                walk.close(at);
                walk.search(at, reason)?
            }
        };
    }
    walk.close(walk.end.max(part.start));
    Ok(walk.found)
}

impl ScannedRecords {
    fn add_footer(&mut self, payload: u64) {
        if self.footers.len() == FOOTERS {
            self.footers.pop_front();
        }
        self.footers.push_back(payload);
    }
}

enum ScanStep {
    /// File offset of the next record.
    To(u64),
    /// There is no valid record here; the reason.
    Broken(NoRecord),
}

struct Scanner<'a> {
    window: Window<'a>,
    end: u64,
    rules: ScanRules,
    /// Kind and file offset of the current block.
    open: Option<(BlockKind, u64)>,
    /// Counts of the current plain block.
    counts: RecordCounts,
    found: ScannedRecords,
}

impl Scanner<'_> {
    fn step(&mut self, at: u64) -> Result<ScanStep, ReadError> {
        let there = (self.end - at).min(FRAME_AT as u64) as usize;
        let bytes = self.window.peek(at, there)?;
        let Some((kind, _, size)) = record_header(bytes) else {
            return Ok(ScanStep::Broken(NoRecord::Cut));
        };
        let size = size as u64;
        if size < RECORD_HEADER as u64 {
            return Ok(ScanStep::Broken(NoRecord::Size(size)));
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
                self.found.head_records.push(at);
                return Ok(ScanStep::To(next + u64::from(len)));
            }
            RecordType::AUXTRACE => {
                let size = auxiliary_len(bytes).saturating_add(size);
                let Some(next) = at.checked_add(size).filter(|next| *next <= self.end) else {
                    let end = self.end;
                    return Ok(ScanStep::Broken(NoRecord::BeyondEnd { size, end }));
                };
                self.close(at);
                return Ok(ScanStep::To(next));
            }
            RecordType::HEADER_EVENT_TYPE
                if !bytes.get(RECORD_HEADER..).is_some_and(is_of_processes) =>
            {
                let payload_at = at + RECORD_HEADER as u64;
                let payload = bytes.get(RECORD_HEADER..).unwrap_or_default();
                let is_part = definitions_record::is_part(payload);
                if is_readings(payload) {
                    self.found.clocks.push(payload_at);
                } else if is_part && self.rules.pipe {
                    self.found.head_records.push(at);
                } else if !is_part {
                    self.found.add_footer(payload_at);
                }
                self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK);
            }
            RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE if self.rules.pipe => {
                self.found.head_records.push(at);
                self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK);
            }
            RecordType::FINISHED_ROUND => self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK),
            _ => {
                self.collect(BlockKind::Plain, at, next, PLAIN_BLOCK);
                self.count(at, kind)?;
            }
        }
        Ok(ScanStep::To(next))
    }

    /// A record that extends beyond the end: the footer, after whose header the data end, or a record that was cut.
    fn over_the_end(&mut self, at: u64, kind: RecordType, size: u64) -> ScanStep {
        let footer = kind == RecordType::HEADER_EVENT_TYPE && at + RECORD_HEADER as u64 == self.end;
        if footer && !self.rules.cut {
            self.found.add_footer(self.end);
            self.close(at);
            return ScanStep::To(self.end);
        }
        ScanStep::Broken(NoRecord::BeyondEnd {
            size,
            end: self.end,
        })
    }

    fn chunk(&mut self, at: u64, size: u64, header: &ChunkHeader) {
        self.close(at);
        self.found.blocks.push(Block {
            kind: BlockKind::Chunk,
            offset: at,
            len: size,
            raw_len: header.raw_len,
            samples: Some(header.counts.samples),
            time: header.counts.time(),
            metadata: header.metadata,
        });
    }

    /// Adds a record to the current block, or starts a new block if its kind differs or it would exceed `max` bytes.
    fn collect(&mut self, kind: BlockKind, at: u64, next: u64, max: u64) {
        match self.open {
            Some((open, start)) if open == kind && next - start <= max => {}
            _ => {
                self.close(at);
                self.open = Some((kind, at));
            }
        }
    }

    fn count(&mut self, at: u64, kind: RecordType) -> Result<(), ReadError> {
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
        self.counts.count(sample, time);
        Ok(())
    }

    /// Ends the current block at `at`.
    fn close(&mut self, at: u64) {
        let counts = std::mem::take(&mut self.counts);
        let Some((kind, start)) = self.open.take() else {
            return;
        };
        let plain = kind == BlockKind::Plain;
        if plain && counts.records == 0 {
            // Only footers and ends of rounds, which readers of blocks do not need.
            return;
        }
        let timed = plain && self.rules.time_at.is_some();
        self.found.blocks.push(Block {
            kind,
            offset: start,
            len: at - start,
            raw_len: if plain { (at - start) as u32 } else { 0 },
            samples: plain.then_some(counts.samples),
            time: counts.time().filter(|_| timed),
            metadata: !plain || counts.records != counts.samples,
        });
    }

    /// Searches for the next chunk after bytes that are not a record, and adds the damage. Returns where to continue.
    fn search(&mut self, from: u64, reason: NoRecord) -> Result<u64, ReadError> {
        let next = self.next_chunk(from + 1)?;
        let kind = match next {
            Some(next) => DamageKind::Gap {
                reason,
                lost: next - from,
            },
            None if self.rules.cut => DamageKind::CutRecord {
                before: self.whole(),
            },
            None => DamageKind::NoMoreRecords {
                reason,
                lost: self.end - from,
                before: self.whole(),
            },
        };
        self.found.damage.push(Damage::new(from, kind));
        Ok(next.unwrap_or(self.end))
    }

    /// The undamaged part before the damage. It counts all blocks, so it is asked for once, where nothing follows.
    fn whole(&self) -> WholeBefore {
        let blocks = self.found.blocks.iter();
        let chunks = blocks.filter(|block| block.kind == BlockKind::Chunk);
        WholeBefore {
            chunks: chunks.count(),
        }
    }

    fn next_chunk(&mut self, from: u64) -> Result<Option<u64>, ReadError> {
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
            // A chunk header may cross the end of this step.
            at += (bytes.len() - FRAME_AT) as u64;
        }
        Ok(None)
    }
}

fn is_chunk(bytes: &[u8], room: u64) -> bool {
    bytes.first() == Some(&(RecordType::COMPRESSED.0 as u8))
        && ChunkHeader::parse(bytes).is_some()
        && record_header(bytes).is_some_and(|(.., size)| size as u64 <= room)
}

/// Length of the data that follow an `AUXTRACE` record.
pub(super) fn auxiliary_len(record: &[u8]) -> u64 {
    let len = record.get(RECORD_HEADER..).and_then(<[u8]>::first_chunk);
    len.map_or(0, |len| u64::from_le_bytes(*len))
}

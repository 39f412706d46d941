//! Samples of event groups (`PERF_SAMPLE_READ`), as from `perf record -e '{a,b}:S'`, which have the counts of all members. perf splits
//! such a sample into one event for each member whose count has increased since its last sample; the increase is the event's period
//! (`deliver_sample_group`, tools/perf/util/session.c). Here samples are split when their block is read.
//!
//! Inherited events have a count per thread (Linux 6.12, perf 6.13: `perf_evsel__attr_has_per_thread_sample_period`,
//! tools/lib/perf/evsel.c).
//!
//! The counts of an id are in file order, because they come from one ring. The counts before each block are found once, by
//! [reading all blocks in order](super::group_read), so that each block can then be read independently.

use std::collections::{HashMap, HashSet};

use crate::perf::cursor::Cursor;
use crate::perf::{Attr, EventAttr, RecordType, Records, SampleType};

/// Maximum number of ids whose counts are tracked, because the memory per block grows with it.
pub(crate) const MAX_IDS: usize = 4096;

/// Length of a block's split samples after which the rest is not split, bytes: a small file could claim large samples with many members.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Maximum number of counts that are tracked: one per id, or per id and thread.
pub(crate) const MAX_COUNTS: usize = 1 << 20;

/// `PERF_FORMAT_ID`, `PERF_FORMAT_GROUP`, `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`, `PERF_FORMAT_LOST`.
const ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const TIMES: u64 = 0b11;
const LOST: u64 = 1 << 4;

/// Size of a record header, bytes.
const HEADER: usize = 8;

/// Splits the group samples of a trace.
#[derive(Debug)]
pub(crate) struct GroupReads {
    /// Offset of the id in every sample's body.
    id_at: usize,
    /// Layout of the samples of each id.
    layouts: HashMap<u64, CountLayout>,
    /// Counts before each block, of the counters in the block, by the block's file offset.
    before: HashMap<u64, Vec<(Counter, u64)>>,
}

/// What has a count: an id, or an id in one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counter {
    id: u64,
    /// 0 if all threads have one count.
    tid: u32,
}

/// Offsets in the body of a sample, bytes.
#[derive(Clone, Copy, Debug)]
struct CountLayout {
    identifier: Option<usize>,
    id: Option<usize>,
    period: Option<usize>,
    /// Offset of the thread id, if each thread has a count.
    tid: Option<usize>,
    /// Offset of the counts.
    fixed: usize,
    read_format: u64,
    callchain: bool,
    raw: bool,
    is_read: bool,
}

/// The counts of a sample.
struct Read {
    /// Id and count of each member.
    counts: Vec<(u64, u64)>,
    /// Offset of the raw part in the body, if there is one.
    raw: Option<usize>,
}

/// The id of a member of a group, and the increase of its count.
struct Member {
    id: u64,
    period: u64,
}

impl CountLayout {
    fn new(attr: &Attr) -> Self {
        let mut end = 0;
        let mut add = |bit: SampleType| {
            attr.sample_type.has(bit).then(|| {
                end += 8;
                end - 8
            })
        };
        let identifier = add(SampleType::IDENTIFIER);
        add(SampleType::IP);
        // The process id comes first.
        let tid = add(SampleType::TID).map(|offset| offset + 4);
        add(SampleType::TIME);
        add(SampleType::ADDR);
        let id = add(SampleType::ID);
        add(SampleType::STREAM_ID);
        add(SampleType::CPU);
        let period = add(SampleType::PERIOD);
        Self {
            identifier,
            id,
            period,
            tid: tid.filter(|_| attr.flags & Attr::INHERIT != 0),
            fixed: end,
            read_format: attr.read_format,
            callchain: attr.sample_type.has(SampleType::CALLCHAIN),
            raw: attr.sample_type.has(SampleType::RAW),
            is_read: attr.sample_type.has(SampleType::READ) && attr.read_format & ID != 0,
        }
    }

    /// Reads the counts of a sample.
    fn counts(&self, body: &[u8]) -> Option<Read> {
        let mut cursor = Cursor::new(body.get(self.fixed..)?);
        let format = self.read_format;
        let times = 8 * (format & TIMES).count_ones() as usize;
        let lost = if format & LOST == 0 { 0 } else { 8 };
        let mut counts = Vec::new();
        let mut end = self.fixed;
        if format & GROUP == 0 {
            let value = cursor.u64()?;
            cursor.take(times)?;
            counts.push((cursor.u64()?, value));
            end += 16 + times + lost;
        } else {
            let count = usize::try_from(cursor.u64()?).ok()?;
            cursor.take(times)?;
            // Ends at the end of the record, whatever `count` claims.
            for _ in 0..count {
                let value = cursor.u64()?;
                counts.push((cursor.u64()?, value));
                cursor.take(lost)?;
            }
            end += 8 + times + counts.len() * (16 + lost);
        }
        if self.callchain {
            let count = Cursor::new(body.get(end..)?).u64()?;
            end = usize::try_from(count)
                .ok()?
                .checked_mul(8)?
                .checked_add(end + 8)?;
        }
        Some(Read {
            counts,
            raw: self.raw.then_some(end),
        })
    }
}

/// The counts of all ids, while blocks are read in order.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {
    now: HashMap<Counter, u64>,
    /// Counts before the current block, of the counters seen in it.
    before: Vec<(Counter, u64)>,
    /// Counters seen in the current block.
    met: HashSet<Counter>,
    /// Number of samples that were not split, or whose members were dropped, because a block exceeded [`MAX_BYTES`].
    pub(crate) left: u64,
    /// Number of samples of members that were dropped because of [`MAX_COUNTS`].
    pub(crate) untracked: u64,
    /// Whether no counter is added: those that were not tracked when all blocks were read have no earlier count.
    is_complete: bool,
}

impl GroupCounters {
    /// Sets a count, and returns by how much it increased. A count that decreased is that of a new thread with a reused id. `None` if
    /// there are more than [`MAX_COUNTS`].
    fn increase(&mut self, counter: Counter, count: u64) -> Option<u64> {
        let is_full = self.is_complete || self.now.len() >= MAX_COUNTS;
        if is_full && !self.now.contains_key(&counter) {
            return None;
        }
        let before = self.now.insert(counter, count).unwrap_or(0);
        if self.met.insert(counter) {
            self.before.push((counter, before));
        }
        Some(count.checked_sub(before).unwrap_or(count))
    }

    /// Ends a block. Returns the counts before it.
    fn end_block(&mut self) -> Vec<(Counter, u64)> {
        self.met.clear();
        std::mem::take(&mut self.before)
    }
}

impl GroupReads {
    /// The splitter for these events; `None` if their samples have no counts.
    pub(crate) fn new(events: &[EventAttr]) -> Option<Self> {
        let layouts: Vec<CountLayout> = events
            .iter()
            .map(|event| CountLayout::new(&event.attr))
            .collect();
        if !layouts.iter().any(|layout| layout.is_read) {
            return None;
        }
        let all_identified = layouts.iter().all(|layout| layout.identifier.is_some());
        let id_at = if all_identified {
            layouts.first()?.identifier
        } else {
            let first = layouts.first()?.id;
            first.filter(|_| layouts.iter().all(|layout| layout.id == first))
        };
        let owners = events.iter().zip(&layouts);
        let ids = owners.flat_map(|(event, layout)| event.ids.iter().map(move |id| (*id, *layout)));
        Some(Self {
            id_at: id_at?,
            layouts: ids.collect(),
            before: HashMap::new(),
        })
    }

    /// Number of ids.
    pub(crate) fn ids(&self) -> usize {
        self.layouts.len()
    }

    /// Reads the counts of the next block of the file. Returns the number of its samples after splitting. `out` is a buffer.
    pub(crate) fn count_block(
        &mut self,
        block_offset: u64,
        records: &[u8],
        counts: &mut GroupCounters,
        out: &mut Vec<u8>,
    ) -> u32 {
        let samples = self.split(records, counts, out);
        self.before.insert(block_offset, counts.end_block());
        samples
    }

    /// Replaces the content of `out` by the records of a block, with group samples split.
    pub(crate) fn expand(&self, block_offset: u64, records: &[u8], out: &mut Vec<u8>) {
        let mut counts = GroupCounters::default();
        if let Some(before) = self.before.get(&block_offset) {
            counts.now.extend(before.iter().copied());
            counts.is_complete = true;
        }
        self.split(records, &mut counts, out);
    }

    /// Replaces the content of `out` by records with group samples split. Returns the number of samples.
    fn split(&self, records: &[u8], counts: &mut GroupCounters, out: &mut Vec<u8>) -> u32 {
        out.clear();
        let mut samples = 0;
        let (mut walk, mut begin) = (Records::new(records), 0);
        while let Some(record) = walk.next() {
            let whole = records.get(begin..walk.offset()).unwrap_or_default();
            begin = walk.offset();
            if record.kind != RecordType::SAMPLE || out.len() > MAX_BYTES {
                let is_sample = record.kind == RecordType::SAMPLE;
                samples += u32::from(is_sample);
                counts.left += u64::from(is_sample);
                out.extend_from_slice(whole);
                continue;
            }
            samples += self.sample(whole, counts, out).unwrap_or_else(|| {
                out.extend_from_slice(whole);
                1
            });
        }
        samples
    }

    /// Appends a sample as one event per member. Returns their number; `None` if the sample has no counts.
    fn sample(&self, whole: &[u8], counts: &mut GroupCounters, out: &mut Vec<u8>) -> Option<u32> {
        let body = whole.get(HEADER..)?;
        let word = body.get(self.id_at..)?.first_chunk::<8>()?;
        let leader = u64::from_le_bytes(*word);
        let layout = self.layouts.get(&leader).filter(|layout| layout.is_read)?;
        let Read {
            counts: members,
            raw,
        } = layout.counts(body)?;
        let tid = match layout.tid {
            Some(at) => u32::from_le_bytes(*body.get(at..)?.first_chunk()?),
            None => 0,
        };
        let mut samples = 0;
        for (id, count) in members {
            if !self.layouts.contains_key(&id) {
                continue;
            }
            let period = match counts.increase(Counter { id, tid }, count) {
                Some(0) => continue,
                Some(period) => period,
                None => {
                    counts.untracked += 1;
                    continue;
                }
            };
            if out.len() > MAX_BYTES {
                counts.left += 1;
                continue;
            }
            let raw = raw.filter(|_| id != leader);
            let start = out.len();
            let member = Member { id, period };
            match layout.put(whole, member, raw, out) {
                Some(()) => samples += 1,
                None => out.truncate(start),
            }
        }
        Some(samples)
    }
}

impl CountLayout {
    /// Offset of the first count.
    const fn first_count(&self) -> usize {
        if self.read_format & GROUP == 0 {
            return self.fixed;
        }
        let times = 8 * (self.read_format & TIMES).count_ones() as usize;
        self.fixed + 8 + times
    }

    /// Appends a sample with the id and period of a member. `raw` is the offset of a raw part to empty: the raw part is the leader's.
    fn put(
        &self,
        whole: &[u8],
        Member { id, period }: Member,
        raw: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        match raw {
            None => out.extend_from_slice(whole),
            Some(at) => {
                let (head, rest) = whole.split_at_checked(HEADER + at)?;
                let mut cursor = Cursor::new(rest);
                let len = cursor.u32()? as usize;
                cursor.take(len)?;
                out.extend_from_slice(head);
                // A raw part of 4 bytes, too short for any field.
                out.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
                out.extend_from_slice(rest.get(4 + len..)?);
                let size = u16::try_from(out.len() - start).ok()?;
                out.get_mut(start + 6..start + 8)?
                    .copy_from_slice(&size.to_le_bytes());
            }
        }
        // Samples without a period have it as their first count.
        let count = self.period.is_none().then_some(self.first_count());
        let words = [
            (self.identifier, id),
            (self.id, id),
            (self.period, period),
            (count, period),
        ];
        for (at, word) in words {
            if let Some(at) = at {
                let at = start + HEADER + at;
                out.get_mut(at..at + 8)?
                    .copy_from_slice(&word.to_le_bytes());
            }
        }
        Some(())
    }
}

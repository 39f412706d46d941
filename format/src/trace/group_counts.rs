//! Samples that hold counts (`PERF_SAMPLE_READ`), as those of `perf record -e '{a,b}:S'`: perf makes of each one event for every
//! member of the group whose count has risen since it was read last; by how much is the event's period (`deliver_sample_group`,
//! tools/perf/util/session.c). Records are taken apart likewise when their block is read.
//!
//! Counts of an id are in the order of the file, because they come from one ring. What was counted before a block is found out once,
//! by [reading all blocks in order](super::group_read); then each can be read on its own.

use std::collections::HashMap;

use crate::perf::cursor::Cursor;
use crate::perf::{Attr, EventAttr, RecordType, Records, SampleType};

/// Most ids whose counts are followed: what is known before each block grows with them.
pub(crate) const MOST_IDS: usize = 4096;

/// Bytes after which the samples of a block are left as they are: a small file could claim large ones for many members.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// `PERF_FORMAT_ID`, `PERF_FORMAT_GROUP`, and that of two times and of losses.
const ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const TIMES: u64 = 0b11;
const LOST: u64 = 1 << 4;

/// Bytes of a record's header.
const HEADER: usize = 8;

/// How samples of a trace are taken apart.
#[derive(Debug)]
pub(crate) struct GroupReads {
    /// Offset of the id in every sample's body.
    id_at: usize,
    /// Where the parts of the samples of an id stand.
    places: HashMap<u64, Place>,
    /// Counts before the block at a file offset, of the ids in it.
    before: HashMap<u64, Vec<(u64, u64)>>,
}

/// Where parts of a sample's body stand.
#[derive(Clone, Copy, Debug)]
struct Place {
    identifier: Option<usize>,
    id: Option<usize>,
    period: Option<usize>,
    /// Bytes before the counts.
    fixed: usize,
    read_format: u64,
    callchain: bool,
    raw: bool,
    is_read: bool,
}

/// The counts of a sample.
struct Read {
    /// Ids and counts.
    counts: Vec<(u64, u64)>,
    /// Where the raw part begins in the body, if there is one.
    raw: Option<usize>,
}

impl Place {
    fn new(attr: &Attr) -> Self {
        let mut end = 0;
        let mut place = |bit: SampleType| {
            attr.sample_type.has(bit).then(|| {
                end += 8;
                end - 8
            })
        };
        let identifier = place(SampleType::IDENTIFIER);
        for bit in [
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
        ] {
            place(bit);
        }
        let id = place(SampleType::ID);
        place(SampleType::STREAM_ID);
        place(SampleType::CPU);
        let period = place(SampleType::PERIOD);
        Self {
            identifier,
            id,
            period,
            fixed: end,
            read_format: attr.read_format,
            callchain: attr.sample_type.has(SampleType::CALLCHAIN),
            raw: attr.sample_type.has(SampleType::RAW),
            is_read: attr.sample_type.has(SampleType::READ) && attr.read_format & ID != 0,
        }
    }

    /// The counts of a sample.
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
            // No more than the record has bytes.
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

/// Counts as they are followed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    now: HashMap<u64, u64>,
    /// What ids counted before the block that is read.
    before: Vec<(u64, u64)>,
    /// Ids that were met in the block.
    met: HashMap<u64, ()>,
    /// Samples, of the file or of a member, beyond [`MOST_BYTES`] of a block.
    pub(crate) left: u64,
}

impl Counts {
    /// How much a count has risen.
    fn rise(&mut self, id: u64, count: u64) -> u64 {
        let before = self.now.insert(id, count).unwrap_or(0);
        if self.met.insert(id, ()).is_none() {
            self.before.push((id, before));
        }
        count.wrapping_sub(before)
    }

    /// Ends a block: what was counted before it.
    fn end_block(&mut self) -> Vec<(u64, u64)> {
        self.met.clear();
        std::mem::take(&mut self.before)
    }
}

impl GroupReads {
    /// Where the counts of these events stand; `None` if their samples have none.
    pub(crate) fn new(events: &[EventAttr]) -> Option<Self> {
        let places: Vec<Place> = events.iter().map(|event| Place::new(&event.attr)).collect();
        if !places.iter().any(|place| place.is_read) {
            return None;
        }
        let all_identified = places.iter().all(|place| place.identifier.is_some());
        let id_at = if all_identified {
            places.first()?.identifier
        } else {
            let first = places.first()?.id;
            first.filter(|_| places.iter().all(|place| place.id == first))
        };
        let owners = events.iter().zip(&places);
        let ids = owners.flat_map(|(event, place)| event.ids.iter().map(move |id| (*id, *place)));
        Some(Self {
            id_at: id_at?,
            places: ids.collect(),
            before: HashMap::new(),
        })
    }

    /// Ids of events.
    pub(crate) fn ids(&self) -> usize {
        self.places.len()
    }

    /// Counts the records of the next block of the file and says how many samples it has when taken apart. `out` is memory.
    pub(crate) fn count_block(
        &mut self,
        block_offset: u64,
        records: &[u8],
        counts: &mut Counts,
        out: &mut Vec<u8>,
    ) -> u32 {
        let samples = self.take_apart(records, counts, out);
        self.before.insert(block_offset, counts.end_block());
        samples
    }

    /// Replaces `out` by the records of a block, taken apart.
    pub(crate) fn expand(&self, block_offset: u64, records: &[u8], out: &mut Vec<u8>) {
        let mut counts = Counts::default();
        if let Some(before) = self.before.get(&block_offset) {
            counts.now.extend(before.iter().copied());
        }
        self.take_apart(records, &mut counts, out);
    }

    /// Replaces `out` by records, taken apart; how many samples there are then.
    fn take_apart(&self, records: &[u8], counts: &mut Counts, out: &mut Vec<u8>) -> u32 {
        out.clear();
        let mut samples = 0;
        let (mut walk, mut begin) = (Records::new(records), 0);
        while let Some(record) = walk.next() {
            let whole = records.get(begin..walk.offset()).unwrap_or_default();
            begin = walk.offset();
            if record.kind != RecordType::SAMPLE || out.len() > MOST_BYTES {
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

    /// Appends the events of a sample and says how many. `None` for one that has no counts.
    fn sample(&self, whole: &[u8], counts: &mut Counts, out: &mut Vec<u8>) -> Option<u32> {
        let body = whole.get(HEADER..)?;
        let word = body.get(self.id_at..)?.first_chunk::<8>()?;
        let leader = u64::from_le_bytes(*word);
        let place = self.places.get(&leader).filter(|place| place.is_read)?;
        let Read {
            counts: members,
            raw,
        } = place.counts(body)?;
        let mut samples = 0;
        for (id, count) in members {
            if !self.places.contains_key(&id) {
                continue;
            }
            let period = counts.rise(id, count);
            if period == 0 {
                continue;
            }
            if out.len() > MOST_BYTES {
                counts.left += 1;
                continue;
            }
            let raw = raw.filter(|_| id != leader);
            let start = out.len();
            match place.put(whole, (id, period), raw, out) {
                Some(()) => samples += 1,
                None => out.truncate(start),
            }
        }
        Some(samples)
    }
}

impl Place {
    /// Appends a sample as one of a member. The raw part is the leader's: of another member nothing is known.
    fn put(
        &self,
        whole: &[u8],
        (id, period): (u64, u64),
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
                // 4 bytes in which no field has room.
                out.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
                out.extend_from_slice(rest.get(4 + len..)?);
                let size = u16::try_from(out.len() - start).ok()?;
                out.get_mut(start + 6..start + 8)?
                    .copy_from_slice(&size.to_le_bytes());
            }
        }
        let words = [(self.identifier, id), (self.id, id), (self.period, period)];
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

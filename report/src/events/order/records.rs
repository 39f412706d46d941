//! Whole records in the order of time: the samples that are selected, and all records of other kinds.
//!
//! As with [samples alone](super), blocks are taken in the order of their earliest time, and what is before the earliest one of all blocks not
//! yet read is settled. Records without a time are about processes that ran already. They come before the samples of their round, as
//! stock perf delivers them when it reads them.

use std::collections::HashMap;

use rayon::prelude::*;
use usdtrec_format::perf::{RecordType, Records, SampleId, SampleType};
use usdtrec_format::trace::{Block, BlockReader, Damage};

use crate::events::order::MOST_PENDING;
use crate::events::order::pending::{LoadedBlock, Mark, SampleEntry, SampleKey};
use crate::events::outcome::Outcome;
use crate::events::selection::SampleFilter;
use crate::pool::Pool;
use crate::trace::session::TraceSession;
use crate::trace::session::resolver::Resolver;
use crate::trace::session::scan::SampleBlock;

/// Bytes of records that each thread reads before they are put in order.
const BATCH: u64 = 1 << 20;
/// The first type of perf's own records, which describe how it recorded.
const FIRST_OF_PERF: u32 = 64;

/// A record, with its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderedRecord<'a> {
    pub(crate) bytes: &'a [u8],
    /// The time of a sample; `None` if it is another record.
    pub(crate) sample_time: Option<u64>,
}

/// A block that is read.
#[derive(Clone, Copy, Debug)]
struct PlannedBlock<'s> {
    /// Its index in the file.
    index: usize,
    block: &'s Block,
    /// What is known of its samples, if any is selected.
    samples: Option<&'s SampleBlock>,
    /// The earliest time in it, if it is known.
    first: Option<u64>,
    /// The time that records without one are given.
    untimed: u64,
}

impl PlannedBlock<'_> {
    /// The earliest time that its records are given, as far as it is known.
    fn from(&self) -> u64 {
        match self.first {
            Some(first) if !self.block.metadata => first,
            first => first.unwrap_or(self.untimed).min(self.untimed),
        }
    }
}

/// Walks over the records in the order of time.
///
/// # Errors
/// The first error of `take`, which ends the walk.
pub(crate) fn records_in_order<E>(
    session: &TraceSession,
    filter: &SampleFilter,
    mut take: impl FnMut(OrderedRecord<'_>) -> Result<(), E>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    let mut walk = RecordWalk::new(session, filter);
    while walk.next_batch(&mut outcome) {
        let ends = walk.settled(&mut outcome);
        for entry in walk.entries(&ends) {
            let blocks = walk.pending.get(entry.slot as usize);
            if let Some(record) = blocks.and_then(|block| record(&block.bytes, &entry)) {
                take(record)?;
            }
        }
        walk.forget(&ends);
    }
    Ok(outcome)
}

/// The state of a walk.
struct RecordWalk<'s> {
    session: &'s TraceSession,
    filter: &'s SampleFilter,
    id_type: SampleType,
    plan: Vec<PlannedBlock<'s>>,
    /// For each place in the plan, the first mark of the blocks from there on.
    marks: Vec<Mark>,
    /// Blocks of the plan that are read.
    read: usize,
    /// Blocks in memory, in the order of the file.
    pending: Vec<LoadedBlock>,
    /// Buffers to be used again.
    spare: Vec<LoadedBlock>,
    readers: Pool<BlockReader>,
}

impl<'s> RecordWalk<'s> {
    fn new(session: &'s TraceSession, filter: &'s SampleFilter) -> Self {
        let mut plan = plan(session, filter);
        if !session.trace().is_serial() {
            plan.sort_by_key(PlannedBlock::from);
        }
        let mut marks: Vec<Mark> = plan
            .iter()
            .map(|planned| Mark {
                time: planned.from(),
                block: planned.index,
            })
            .collect();
        for at in (1..marks.len()).rev() {
            marks[at - 1] = marks[at - 1].min(marks[at]);
        }
        let first = session.info().events.first();
        Self {
            session,
            filter,
            id_type: first.map_or(SampleType(0), |event| event.attr.id_type()),
            plan,
            marks,
            read: 0,
            pending: Vec::new(),
            spare: Vec::new(),
            readers: Pool::default(),
        }
    }

    /// Reads the next blocks; `false` if all is read and taken.
    fn next_batch(&mut self, outcome: &mut Outcome) -> bool {
        if self.read == self.plan.len() {
            return !self.pending.is_empty();
        }
        let batch = BATCH * rayon::current_num_threads() as u64;
        let mut bytes = 0;
        let rest = self.plan.get(self.read..).unwrap_or_default();
        let due = rest.iter().take_while(|planned| {
            let fits = bytes < batch;
            bytes += u64::from(planned.block.raw_len).max(planned.block.len);
            fits
        });
        let jobs: Vec<_> = due
            .map(|planned| (planned, self.spare.pop().unwrap_or_default()))
            .collect();
        self.read += jobs.len();
        let load = |(planned, mut loaded): (&PlannedBlock<'_>, LoadedBlock)| {
            let damage = self.load(planned, &mut loaded);
            (damage, loaded)
        };
        let loaded: Vec<_> = if self.session.trace().is_serial() {
            jobs.into_iter().map(load).collect()
        } else {
            jobs.into_par_iter().map(load).collect()
        };
        for (damage, loaded) in loaded {
            outcome.damage.extend(damage);
            outcome.unknown += loaded.unknown;
            self.pending.push(loaded);
        }
        self.pending.sort_by_key(|loaded| loaded.block);
        true
    }

    /// Reads a block; damage costs only what it hits.
    fn load(&self, planned: &PlannedBlock<'_>, loaded: &mut LoadedBlock) -> Option<Damage> {
        *loaded = LoadedBlock {
            block: planned.index,
            bytes: std::mem::take(&mut loaded.bytes),
            keys: std::mem::take(&mut loaded.keys),
            ..LoadedBlock::default()
        };
        loaded.keys.clear();
        let mut reader = self.readers.take().unwrap_or_default();
        let done = self.sort(planned, &mut reader, loaded);
        if let Some(samples) = planned.samples {
            self.session.note_read(samples);
        }
        let damage = match done {
            Ok(()) => reader.cut().cloned(),
            Err(damage) => Some(damage),
        };
        self.readers.put(reader);
        damage
    }

    fn sort(
        &self,
        planned: &PlannedBlock<'_>,
        reader: &mut BlockReader,
        loaded: &mut LoadedBlock,
    ) -> Result<(), Damage> {
        let mut resolver = None;
        for record in Records::new(reader.read(self.session.trace(), planned.block)?) {
            let time = if record.kind == RecordType::SAMPLE {
                let Some(timed) = self.session.time_of(record.body) else {
                    loaded.unknown += 1;
                    continue;
                };
                let is_asked = self.filter.early(timed.target, timed.time)
                    && (self.filter.is_simple() || self.is_asked(record.body, &mut resolver));
                if !is_asked {
                    continue;
                }
                timed.time
            } else if record.kind.0 < FIRST_OF_PERF {
                let split = SampleId::split(record.body, self.id_type);
                split.map_or(0, |split| split.id.time)
            } else {
                continue;
            };
            loaded.keys.push(SampleKey {
                time: if time == 0 { planned.untimed } else { time },
                offset: record.offset as u32,
            });
        }
        loaded.keys.sort_by_key(|key| key.time);
        reader.swap_records(&mut loaded.bytes);
        Ok(())
    }

    /// Whether a sample is requested, where its event and time do not say all.
    fn is_asked(&self, body: &[u8], resolver: &mut Option<Resolver<'s>>) -> bool {
        let resolver = resolver.get_or_insert_with(|| Resolver::new(self.session));
        let hit = self.session.sample(body);
        hit.is_some_and(|hit| self.filter.late(hit.target, &hit.sample, resolver))
    }

    /// For each block in memory, the number of records that can be taken.
    fn settled(&self, outcome: &mut Outcome) -> Vec<usize> {
        let mut mark = self.marks.get(self.read).copied();
        let bytes: usize = self.pending.iter().map(LoadedBlock::memory).sum();
        if mark.is_some() && bytes > MOST_PENDING {
            outcome.forced = true;
            mark = None;
        }
        let pending = self.pending.iter();
        pending.map(|block| block.before(mark)).collect()
    }

    /// The settled records in order.
    fn entries(&self, ends: &[usize]) -> Vec<SampleEntry> {
        let mut entries = Vec::new();
        for ((slot, block), end) in (0..).zip(&self.pending).zip(ends) {
            let keys = block.keys.get(block.shown..*end).unwrap_or_default();
            entries.extend(keys.iter().map(|key| SampleEntry {
                time: key.time,
                slot,
                offset: key.offset,
            }));
        }
        // Stable, and finds the sorted runs of the blocks.
        entries.sort_by_key(|entry| entry.time);
        entries
    }

    /// Drops blocks that are taken completely.
    fn forget(&mut self, ends: &[usize]) {
        for (block, &end) in self.pending.iter_mut().zip(ends) {
            block.shown = end;
        }
        let taken = |block: &mut LoadedBlock| block.shown == block.keys.len();
        self.spare.extend(self.pending.extract_if(.., taken));
    }
}

/// The blocks with records that are taken, in the order of the file.
fn plan<'s>(session: &'s TraceSession, filter: &SampleFilter) -> Vec<PlannedBlock<'s>> {
    let sampled = session.blocks().iter();
    let sampled: HashMap<u64, &SampleBlock> =
        sampled.map(|block| (block.block.offset, block)).collect();
    let blocks = session.trace().blocks().iter().enumerate();
    let planned = blocks.map(|(index, block)| {
        let samples = sampled.get(&block.offset).copied();
        let samples = samples.filter(|samples| filter.block(samples));
        let known = [block.time, samples.map(|samples| samples.time)];
        PlannedBlock {
            index,
            block,
            samples,
            first: known.into_iter().flatten().map(|time| time.first).min(),
            untimed: 0,
        }
    });
    let mut plan: Vec<PlannedBlock<'_>> = planned.collect();
    // A round begins where metadata follow samples.
    let is_of_round = |before: &PlannedBlock<'_>, next: &PlannedBlock<'_>| {
        before.block.samples == Some(0) || !next.block.metadata
    };
    let mut begin = None;
    for round in plan.chunk_by_mut(is_of_round) {
        let first = round.iter().filter_map(|planned| planned.first).min();
        // In the first round, what has no time comes before all.
        let untimed = begin.map_or(0, |begin| first.unwrap_or(begin));
        begin = first.or(begin).or(Some(0));
        for planned in round {
            planned.untimed = untimed;
        }
    }
    plan.retain(|planned| planned.samples.is_some() || planned.block.metadata);
    plan
}

/// The record of an entry.
fn record<'a>(bytes: &'a [u8], entry: &SampleEntry) -> Option<OrderedRecord<'a>> {
    let from = bytes.get(entry.offset as usize..)?;
    let (header, _) = from.split_first_chunk::<8>()?;
    let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
    let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    Some(OrderedRecord {
        bytes: from.get(..size)?,
        sample_time: (kind == RecordType::SAMPLE.0).then_some(entry.time),
    })
}

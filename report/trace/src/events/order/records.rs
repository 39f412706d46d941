//! Whole records in the order of time: the samples that are selected, and all records of other kinds.
//!
//! As with [samples alone](super), blocks are taken in the order of their earliest time, and what is before the earliest one of all blocks not
//! yet read is settled. Records without a time are about processes that ran already. They come before the samples of their round, as
//! stock perf delivers them when it reads them.

use std::collections::HashMap;

use usdtrec_format::perf::{RecordType, Records, SampleId, SampleType};
use usdtrec_format::trace::{Block, BlockReader, Damage};

use crate::events::order::batches::{Batches, PlannedBlock};
use crate::events::order::pending::{LoadedBlock, Mark, SampleEntry, SampleKey};
use crate::events::outcome::ReadOutcome;
use crate::events::selection::SampleFilter;
use crate::session::TraceSession;
use crate::session::resolver::Resolver;
use crate::session::scan::SampleBlock;

/// The first type of perf's own records, which describe how it recorded.
const FIRST_OF_PERF: u32 = 64;

/// A record, with its header.
#[derive(Clone, Copy, Debug)]
pub struct OrderedRecord<'a> {
    /// The record, its header first.
    pub bytes: &'a [u8],
    /// The time of a sample; `None` if it is another record.
    pub sample_time: Option<u64>,
}

/// A block that is read.
#[derive(Clone, Copy, Debug)]
struct PlannedRecords<'s> {
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

impl PlannedBlock for PlannedRecords<'_> {
    /// The earliest time that its records are given, as far as it is known.
    fn mark(&self) -> Mark {
        let time = match self.first {
            Some(first) if !self.block.metadata => first,
            first => first.unwrap_or(self.untimed).min(self.untimed),
        };
        Mark {
            time,
            block: self.index,
        }
    }

    fn bytes(&self) -> u64 {
        u64::from(self.block.raw_len).max(self.block.len)
    }
}

/// Walks over the records in the order of time.
///
/// # Errors
/// The first error of `take`, which ends the walk.
pub fn records_in_order<E>(
    session: &TraceSession,
    filter: &SampleFilter,
    mut take: impl FnMut(OrderedRecord<'_>) -> Result<(), E>,
) -> Result<ReadOutcome, E> {
    let mut outcome = ReadOutcome::default();
    let walk = RecordWalk::new(session, filter);
    let mut batches = Batches::new(session, plan(session, filter));
    let load = |planned: &PlannedRecords<'_>, reader: &mut _, loaded: &mut _| {
        let done = walk.load(planned, reader, loaded);
        if let Some(samples) = planned.samples {
            session.note_read(samples);
        }
        done
    };
    while batches.next(load, &mut outcome) {
        let ends = batches.settled(&mut outcome);
        let pending = batches.pending();
        for entry in entries(pending, &ends) {
            let block = pending.get(entry.slot as usize);
            if let Some(record) = block.and_then(|block| record(&block.bytes, &entry)) {
                take(record)?;
            }
        }
        batches.forget(&ends);
    }
    Ok(outcome)
}

/// What decides which records are taken, and their order.
struct RecordWalk<'s> {
    session: &'s TraceSession,
    filter: &'s SampleFilter,
    id_type: SampleType,
}

impl<'s> RecordWalk<'s> {
    fn new(session: &'s TraceSession, filter: &'s SampleFilter) -> Self {
        let first = session.info().events.first();
        Self {
            session,
            filter,
            id_type: first.map_or(SampleType(0), |event| event.attr.id_type()),
        }
    }

    /// Reads a block into `loaded`, which is empty.
    fn load(
        &self,
        planned: &PlannedRecords<'_>,
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
}

/// The settled records in order.
fn entries(pending: &[LoadedBlock], ends: &[usize]) -> Vec<SampleEntry> {
    let mut entries = Vec::new();
    for ((slot, block), end) in (0..).zip(pending).zip(ends) {
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

/// The blocks with records that are taken, in the order of the file.
fn plan<'s>(session: &'s TraceSession, filter: &SampleFilter) -> Vec<PlannedRecords<'s>> {
    let sampled = session.blocks().iter();
    let sampled: HashMap<u64, &SampleBlock> =
        sampled.map(|block| (block.block.offset, block)).collect();
    let blocks = session.trace().blocks().iter().enumerate();
    let planned = blocks.map(|(index, block)| {
        let samples = sampled.get(&block.offset).copied();
        let samples = samples.filter(|samples| filter.block(samples));
        let known = [block.time, samples.map(|samples| samples.time)];
        PlannedRecords {
            index,
            block,
            samples,
            first: known.into_iter().flatten().map(|time| time.first).min(),
            untimed: 0,
        }
    });
    let mut plan: Vec<PlannedRecords<'_>> = planned.collect();
    // A round begins where metadata follow samples.
    let is_of_round = |before: &PlannedRecords<'_>, next: &PlannedRecords<'_>| {
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

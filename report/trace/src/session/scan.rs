//! What must be read before any sample can be shown: the trace's metadata, and the times of blocks whose index has none.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use usdtrec_format::perf::{
    DeferredChain, Lost, LostSamples, RawRecord, RecordType, Records, SampleType,
};
use usdtrec_format::trace::{Block, BlockReader, Damage, DamageKind, Digest, TimeRange, Trace};

use crate::pool::Pool;
use crate::process::joined_log::JoinedLog;
use crate::process::log::{ProcessLog, Scope};
use crate::process::mappers::RecordedFiles;
use crate::session::deferred_chains::DeferredChains;
use crate::session::events::Events;
use crate::session::head::time_of;
use crate::session::ids::SampleIds;
use crate::time_span::{TimeSpan, TraceTimes};
use crate::wall_times::WallTimes;

/// Blocks, and bytes of records, that are read before what was found in them is put together: blocks may be very many.
const AT_ONCE: usize = 4096;
const BYTES_AT_ONCE: u64 = 64 << 20;

/// A block that holds samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleBlock {
    pub block: Block,
    /// From the earliest to the latest time of its samples.
    pub(crate) time: TimeRange,
    pub(crate) samples: u64,
    /// Bytes of records.
    pub(crate) bytes: u64,
}

/// Events lost, by the index of their event (`None` if that is not known), as the kernel said while recording: at least so
/// many.
pub(crate) type LostByEvent = BTreeMap<Option<u32>, u64>;

/// What a first pass over a trace found.
#[derive(Debug)]
pub(crate) struct Scan<'t> {
    /// What is known of processes.
    pub(crate) log: JoinedLog<'t>,
    /// In the order of the file; without those that are known to have nothing of the time that is selected.
    pub(crate) blocks: Vec<SampleBlock>,
    /// From the earliest to the latest time of all samples.
    pub(crate) time: Option<TimeRange>,
    /// As LOST records say.
    lost: LostByEvent,
    /// As LOST_SAMPLES records say.
    counted: LostByEvent,
    pub(crate) damage: Vec<Damage>,
    pub(crate) deferred: DeferredChains,
    /// Whether the blocks with mappings are known, so that they can be read again when they are requested.
    pub(crate) is_repeatable: bool,
}

/// Metadata of a time that is not selected.
#[derive(Clone, Copy, Debug)]
struct Later {
    until: u64,
    /// File offset of the first block that may be left out.
    from: u64,
}

impl Later {
    fn has(self, block: &Block) -> bool {
        let is_later = |time: TimeRange| time.first > self.until;
        block.offset > self.from && block.samples == Some(0) && block.time.is_some_and(is_later)
    }
}

/// What the index says of a block.
enum Indexed {
    /// Nothing in it is needed.
    Nothing,
    Samples(SampleBlock),
}

impl Indexed {
    fn new(block: &Block) -> Option<Self> {
        if block.metadata {
            return None;
        }
        Some(match block.samples? {
            0 => Self::Nothing,
            samples => Self::Samples(SampleBlock {
                block: *block,
                time: block.time?,
                samples: u64::from(samples),
                bytes: u64::from(block.raw_len),
            }),
        })
    }
}

/// Blocks, and what was found in each.
type Found = Vec<(Block, Result<Content, Damage>)>;

/// What one block holds.
#[derive(Debug, Default)]
struct Content {
    log: ProcessLog,
    time: Option<TimeRange>,
    samples: u64,
    bytes: u64,
    /// As LOST records say.
    lost: LostByEvent,
    /// As LOST_SAMPLES records say.
    counted: LostByEvent,
    short: u64,
    cut: Option<Damage>,
    deferred: DeferredChains,
}

/// A pass over the blocks of a trace.
struct Pass<'t> {
    trace: &'t Trace,
    events: &'t Events,
    ids: &'t SampleIds,
    id_type: SampleType,
    later: Later,
    digests: Digests<'t>,
    scope: Scope,
    files: Arc<RecordedFiles>,
}

impl<'t> Pass<'t> {
    fn new(
        trace: &'t Trace,
        events: &'t Events,
        ids: &'t SampleIds,
        span: Option<&TimeSpan>,
        files: &Arc<RecordedFiles>,
    ) -> Self {
        let until = asked_of(span, trace.time(), trace).map_or(u64::MAX, |asked| asked.last);
        let first_sample = trace.blocks().iter().find(|block| block.samples != Some(0));
        let later = Later {
            until,
            // What ran before the recording began is recorded first, without times. Losses are recorded as they happen,
            // unless the recorder counted them at its end.
            from: match (first_sample, trace.losses()) {
                (Some(block), Some(_)) => block.offset,
                _ => u64::MAX,
            },
        };
        let first = trace.info().events.first();
        Self {
            trace,
            events,
            ids,
            id_type: first.map_or(SampleType::default(), |event| event.attr.id_type()),
            later,
            digests: Digests::new(trace, |block| !later.has(block)),
            scope: if is_repeatable(trace) {
                Scope::Names
            } else {
                Scope::All
            },
            files: Arc::clone(files),
        }
    }

    /// What the index says of a block.
    fn indexed(&self, block: &Block) -> Option<Indexed> {
        let later = self.later.has(block).then_some(Indexed::Nothing);
        later.or_else(|| Indexed::new(block))
    }

    /// The same without reading its digest, which is read for its first block.
    fn known(&self, block: &Block) -> Option<Indexed> {
        match self.digests.covering(block) {
            None => self.indexed(block),
            Some(digest) => (digest.covers().start != block.offset).then_some(Indexed::Nothing),
        }
    }

    /// What a block holds.
    fn content(&self, reader: &mut BlockReader, block: &Block) -> Result<Content, Damage> {
        let mut content = self.records(reader.read(self.trace, block)?);
        content.cut = reader.cut().cloned();
        Ok(content)
    }

    fn records(&self, records: &[u8]) -> Content {
        let log = ProcessLog::new(self.scope, Arc::clone(&self.files));
        let mut content = Content {
            log,
            ..Content::default()
        };
        content.take(records, self);
        content
    }

    /// What a block holds; at the first block of a digest, what all of them do.
    fn found(&self, readers: &Pool<BlockReader>, block: &Block) -> Found {
        let digest = self.digests.covering(block);
        let mut reader = readers.take().unwrap_or_default();
        let repeated = digest.and_then(|digest| reader.read_digest(self.trace, digest));
        let found = match (digest, repeated.map(|records| self.records(records))) {
            (_, Some(content)) => vec![(*block, Ok(content))],
            (None, None) => vec![(*block, self.content(&mut reader, block))],
            // Damaged.
            (Some(digest), None) => covered(self.trace, digest)
                .filter(|block| self.indexed(block).is_none())
                .map(|block| (*block, self.content(&mut reader, block)))
                .collect(),
        };
        readers.put(reader);
        found
    }
}

impl<'t> Scan<'t> {
    /// Events lost. Both kinds of records are about the same losses: LOST those that a ring noticed, when it had room again, and
    /// LOST_SAMPLES what was counted, by event, up to when it was written. So more of them is nearer to the truth.
    pub(crate) fn losses(&mut self) -> LostByEvent {
        let sum = |losses: &LostByEvent| -> u64 {
            losses
                .values()
                .fold(0, |all, lost| all.saturating_add(*lost))
        };
        let more = if sum(&self.counted) >= sum(&self.lost) {
            &mut self.counted
        } else {
            &mut self.lost
        };
        std::mem::take(more)
    }

    /// Reads what has to be read for samples of a span of time, in parallel where the file allows it.
    pub(crate) fn new(
        trace: &'t Trace,
        events: &Events,
        ids: &SampleIds,
        span: Option<&TimeSpan>,
        files: &Arc<RecordedFiles>,
    ) -> Self {
        let pass = Pass::new(trace, events, ids, span, files);
        let mut scan = Self {
            log: JoinedLog::new(trace, ProcessLog::new(pass.scope, Arc::clone(files))),
            blocks: Vec::new(),
            time: None,
            lost: LostByEvent::default(),
            counted: LostByEvent::default(),
            damage: Vec::new(),
            deferred: DeferredChains::default(),
            is_repeatable: pass.scope == Scope::Names,
        };
        if trace.is_serial() {
            let mut reader = BlockReader::new();
            for block in trace.blocks() {
                match pass.indexed(block) {
                    Some(indexed) => scan.take(indexed, |_| true),
                    None => scan.add(*block, pass.content(&mut reader, block)),
                }
            }
            return scan;
        }
        // Most blocks have times in the index: only the others are worth dividing among threads.
        let due = scan.take_indexed(&pass, span);
        let indexed = scan.blocks.len();
        let readers = Pool::default();
        let mut rest = &*due;
        while !rest.is_empty() {
            let (blocks, others) = rest.split_at(at_once(rest));
            rest = others;
            let found: Vec<Found> = blocks
                .par_iter()
                .map(|block| pass.found(&readers, block))
                .collect();
            for (block, content) in found.into_iter().flatten() {
                scan.add(block, content);
            }
        }
        if scan.blocks.len() > indexed {
            scan.blocks.sort_by_key(|block| block.block.offset);
        }
        scan
    }

    /// Takes the blocks that need not be read, and returns the others.
    fn take_indexed<'p>(&mut self, pass: &Pass<'p>, span: Option<&TimeSpan>) -> Vec<&'p Block> {
        let blocks = pass.trace.blocks();
        // What the span is a part of must not hang on what only reading shows.
        let holding = blocks.iter().filter(|block| block.samples != Some(0));
        let has_times = holding.clone().all(|block| Indexed::new(block).is_some());
        let times = holding.filter_map(|block| block.time);
        let whole = times.reduce(TimeRange::joined);
        let asked = asked_of(span, whole.filter(|_| has_times), pass.trace);
        let asked = asked.unwrap_or(TimeRange::ALL);
        let is_asked = |block: &SampleBlock| block.time.overlaps(asked);
        let mut due = Vec::new();
        for block in blocks {
            match pass.known(block) {
                Some(indexed) => self.take(indexed, is_asked),
                None => due.push(block),
            }
        }
        due
    }

    /// Takes what the index says of a block; its samples only if they are selected.
    fn take(&mut self, indexed: Indexed, is_asked: impl Fn(&SampleBlock) -> bool) {
        if let Indexed::Samples(block) = indexed {
            let known = self.time.unwrap_or(block.time);
            self.time = Some(known.joined(block.time));
            if is_asked(&block) {
                self.blocks.push(block);
            }
        }
    }

    fn add(&mut self, block: Block, content: Result<Content, Damage>) {
        let content = match content {
            Ok(content) => content,
            Err(damage) => return self.damage.push(damage),
        };
        if content.short > 0 {
            let kind = DamageKind::ShortRecords(content.short);
            self.damage.push(Damage::new(block.offset, kind));
        }
        self.damage.extend(content.cut);
        self.deferred.append(content.deferred);
        let before = self.log.left_out();
        self.log.append(block.offset, content.log);
        if before == 0 && self.log.left_out() > 0 {
            let kind = DamageKind::ProcessRecords;
            self.damage.push(Damage::new(block.offset, kind));
        }
        for (losses, found) in [
            (&mut self.lost, content.lost),
            (&mut self.counted, content.counted),
        ] {
            for (event, lost) in found {
                add(losses, event, lost);
            }
        }
        if content.samples > 0 {
            let block = SampleBlock {
                block,
                time: content.time.unwrap_or_default(),
                samples: content.samples,
                bytes: content.bytes,
            };
            self.take(Indexed::Samples(block), |_| true);
        }
    }
}

impl Content {
    fn take(&mut self, records: &[u8], pass: &Pass<'_>) {
        let content = self;
        content.bytes = records.len() as u64;
        for record in Records::new(records) {
            if record.kind == RecordType::SAMPLE {
                content.samples += 1;
                if let Some(timed) = time_of(record.body, pass.events, pass.ids) {
                    content.time = Some(TimeRange::with(content.time, timed.time));
                }
            } else if content.metadata(&record, pass.ids, pass.id_type).is_none() {
                content.short += 1;
            }
        }
    }

    fn metadata(
        &mut self,
        record: &RawRecord<'_>,
        ids: &SampleIds,
        id_type: SampleType,
    ) -> Option<()> {
        let (losses, id, lost) = match record.kind {
            RecordType::LOST => {
                let lost = Lost::parse(record, id_type)?;
                (&mut self.lost, lost.event_id, lost.lost)
            }
            RecordType::LOST_SAMPLES => {
                let lost = LostSamples::parse(record, id_type)?;
                let id = lost.id.identifier.max(lost.id.id);
                (&mut self.counted, id, lost.lost)
            }
            RecordType::CALLCHAIN_DEFERRED => {
                self.deferred.add(&DeferredChain::parse(record, id_type)?);
                return Some(());
            }
            _ => return self.log.record(record, id_type),
        };
        add(losses, ids.get(id).map(|target| target.event), lost);
        Some(())
    }
}

/// Whether all blocks say whether they hold samples, so that the others can be read again alone.
fn is_repeatable(trace: &Trace) -> bool {
    let known = |block: &Block| block.metadata || block.samples.is_some();
    !trace.is_serial() && trace.blocks().iter().all(known)
}

/// What processes mapped, of a trace whose first pass was [repeatable](Scan::is_repeatable). One block after the other: threads that
/// decode samples may wait for it, and none may be left to read blocks.
pub(crate) fn mappings(
    trace: &Trace,
    events: &Events,
    ids: &SampleIds,
    span: Option<&TimeSpan>,
    files: &Arc<RecordedFiles>,
) -> ProcessLog {
    let mut pass = Pass::new(trace, events, ids, span, files);
    pass.scope = Scope::Mappings;
    let readers = Pool::default();
    let mut log = JoinedLog::new(trace, ProcessLog::new(pass.scope, Arc::clone(files)));
    for block in trace.blocks() {
        if pass.known(block).is_none() {
            // Damage was reported by the first pass.
            let contents = pass.found(&readers, block).into_iter();
            contents
                .filter_map(|(_, content)| content.ok())
                .for_each(|content| log.append(block.offset, content.log));
        }
    }
    log.into_log()
}

/// The times of a span; `None` if it cannot be said yet.
fn asked_of(span: Option<&TimeSpan>, whole: Option<TimeRange>, trace: &Trace) -> Option<TimeRange> {
    let (span, whole) = span.zip(whole)?;
    span.within(
        TraceTimes::new(whole, trace),
        WallTimes::from_trace(trace).as_ref(),
    )
}

/// Number of the first blocks that are read at once.
fn at_once(blocks: &[&Block]) -> usize {
    let mut bytes = 0;
    let few = blocks.iter().take(AT_ONCE).take_while(|block| {
        let fits = bytes < BYTES_AT_ONCE;
        bytes += u64::from(block.raw_len);
        fits
    });
    few.count()
}

fn add(losses: &mut LostByEvent, event: Option<u32>, lost: u64) {
    let sum = losses.entry(event).or_default();
    *sum = sum.saturating_add(lost);
}

/// The digests that are worth reading, in the order of the file.
#[derive(Debug)]
pub(crate) struct Digests<'t>(Vec<&'t Digest>);

impl<'t> Digests<'t> {
    /// The digests with a block that is `wanted`.
    pub(crate) fn new(trace: &'t Trace, wanted: impl Fn(&Block) -> bool) -> Self {
        let digests = trace.digests().iter().filter(|digest| {
            // A digest is read at its first block, which must be there.
            let mut blocks = covered(trace, digest).peekable();
            let first = blocks.peek().map(|block| block.offset);
            first == Some(digest.covers().start) && blocks.any(&wanted)
        });
        Self(digests.collect())
    }

    /// The digest that a block is in.
    pub(crate) fn covering(&self, block: &Block) -> Option<&'t Digest> {
        if !may_be_covered(block) {
            return None;
        }
        let is_before = |digest: &&Digest| digest.covers().end <= block.offset;
        let digest = self.0.get(self.0.partition_point(is_before))?;
        digest.covers().contains(&block.offset).then_some(*digest)
    }
}

/// The blocks that are in a digest.
pub(crate) fn covered<'t>(trace: &'t Trace, digest: &Digest) -> impl Iterator<Item = &'t Block> {
    let covers = digest.covers();
    let first = trace
        .blocks()
        .partition_point(|block| block.offset < covers.start);
    let blocks = trace.blocks().iter().skip(first);
    blocks
        .take_while(move |block| block.offset < covers.end)
        .filter(|block| may_be_covered(block))
}

fn may_be_covered(block: &Block) -> bool {
    block.metadata && block.samples == Some(0)
}

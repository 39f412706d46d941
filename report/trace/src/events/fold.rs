//! Samples in any order: blocks in parallel, each thread with a state of its own that is merged at the end.

use rayon::prelude::*;
use usdtrec_format::perf::{RecordType, Records, Sample};
use usdtrec_format::trace::{BlockReader, Damage};

use crate::added::added_of;
use crate::calls::ScriptCalls;
use crate::events::order::pending::record_at;
use crate::events::order::{Window, in_order};
use crate::events::outcome::ReadOutcome;
use crate::events::selection::SampleFilter;
use crate::events::site_samples::SiteSamples;
use crate::pool::Pool;
use crate::session::TraceSession;
use crate::session::head::TimedTarget;
use crate::session::hit::ParsedHit;
use crate::session::ids::SampleTarget;
use crate::session::resolver::Resolver;
use crate::session::scan::SampleBlock;

/// What a walk over samples gives.
#[derive(Debug)]
pub struct Folded<A> {
    /// The states that samples were added to.
    pub states: Vec<A>,
    /// What went wrong on the way.
    pub outcome: ReadOutcome,
}

/// State of a thread.
struct Worker<'s, A> {
    state: A,
    resolver: Resolver<'s>,
    reader: BlockReader,
    sites: SiteRecords,
    unknown: u64,
}

/// Adds every sample that passes the filter to one of several states, which `make` makes; returns them.
pub fn fold<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
) -> Folded<A> {
    fold_until(session, filter, || false, make, add)
}

/// As [`fold`], until `stop` is true: then blocks are left out. Where arguments were added to events, nothing is left out.
pub fn fold_until<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    stop: impl Fn() -> bool + Sync,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
) -> Folded<A> {
    if added_of(session).is_some() {
        return fold_in_context(session, filter, None, make, |state, resolver, samples| {
            for sample in samples.samples() {
                add(state, resolver, samples.target, &sample);
            }
        });
    }
    fold_blocks(session, filter, stop, make, |worker, block| {
        worker.each(session, filter, block, &add)
    })
}

/// As [`fold`], with samples of one event and site together. With `calls`, the resolver has the functions of scripts that the thread of each
/// sample is in.
pub fn fold_sites<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    calls: Option<&ScriptCalls>,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SiteSamples<'_>) + Sync,
) -> Folded<A> {
    if calls.is_some() || added_of(session).is_some() {
        return fold_in_context(session, filter, calls, make, add);
    }
    fold_blocks(
        session,
        filter,
        || false,
        make,
        |worker, block| worker.each_site(session, filter, block, &add),
    )
}

/// Reads blocks in parallel until `stop` is true, each by one of several workers.
fn fold_blocks<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    stop: impl Fn() -> bool + Sync,
    make: impl Fn() -> A + Sync,
    read: impl Fn(&mut Worker<'s, A>, &SampleBlock) -> Result<Option<Damage>, Damage> + Sync,
) -> Folded<A> {
    let workers = Pool::default();
    let one = |block: &SampleBlock| {
        if stop() {
            return None;
        }
        let mut worker = workers.take().unwrap_or_else(|| Worker {
            state: make(),
            resolver: Resolver::new(session),
            reader: BlockReader::new(),
            sites: SiteRecords::default(),
            unknown: 0,
        });
        let done = read(&mut worker, block);
        session.note_read(block);
        workers.put(worker);
        done.unwrap_or_else(Some)
    };
    let blocks = session.blocks();
    let damage: Vec<Damage> = if session.trace().is_serial() {
        blocks.iter().filter_map(one).collect()
    } else {
        let blocks = blocks.par_iter().filter(|block| filter.block(block));
        blocks.filter_map(one).collect()
    };
    let mut outcome = ReadOutcome {
        damage,
        ..ReadOutcome::default()
    };
    let states = workers.take_all().into_iter().map(|worker| {
        outcome.unknown += worker.unknown;
        worker.state
    });
    let states = states.collect();
    Folded { states, outcome }
}

/// As [`fold_sites`], with what is known of each sample from others: one at a time. Blocks are read in the order of time.
fn fold_in_context<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    calls: Option<&ScriptCalls>,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SiteSamples<'_>) + Sync,
) -> Folded<A> {
    let workers = Pool::default();
    let show = |window: Window<'_>| {
        let mut worker = workers
            .take()
            .unwrap_or_else(|| (make(), Resolver::new(session)));
        let (state, resolver) = &mut worker;
        let mut unknown = 0;
        for number in 0..window.sample_count() {
            match sample_of(session, window, number) {
                Some(samples) => {
                    resolver.set_context(window.context(number));
                    add(state, resolver, samples);
                }
                None => unknown += 1,
            }
        }
        workers.put(worker);
        unknown
    };
    let mut unknown = 0;
    let done = in_order(session, filter, calls, show, |more| {
        unknown += more;
        Ok::<_, std::convert::Infallible>(())
    });
    let mut outcome = done.unwrap_or_default();
    outcome.unknown += unknown;
    let states = workers.take_all().into_iter().map(|(state, _)| state);
    Folded {
        states: states.collect(),
        outcome,
    }
}

/// A sample of a window alone; `None` if it is too short for what its event says.
fn sample_of<'a>(
    session: &'a TraceSession,
    window: Window<'a>,
    number: usize,
) -> Option<SiteSamples<'a>> {
    let (records, offset) = window.record(number)?;
    let TimedTarget { target, .. } = session.time_of_whole(record_at(records, *offset)?)?;
    SiteSamples::new(session, target, records, std::slice::from_ref(offset))
}

impl<'s, A> Worker<'s, A> {
    /// Adds the samples of a block one by one.
    fn each(
        &mut self,
        session: &'s TraceSession,
        filter: &SampleFilter,
        block: &SampleBlock,
        add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>),
    ) -> Result<Option<Damage>, Damage> {
        let records = self.reader.read(session.trace(), &block.block)?;
        for record in Records::new(records) {
            if record.kind != RecordType::SAMPLE {
                continue;
            }
            let Some(ParsedHit { target, sample }) = session.sample(record.body) else {
                self.unknown += 1;
                continue;
            };
            if filter.early(target, sample.time)
                && (filter.is_simple() || filter.late(target, &sample, &mut self.resolver))
            {
                add(&mut self.state, &mut self.resolver, target, &sample);
            }
        }
        Ok(self.reader.cut().cloned())
    }

    /// Adds the samples of a block, those of one site together.
    fn each_site(
        &mut self,
        session: &'s TraceSession,
        filter: &SampleFilter,
        block: &SampleBlock,
        add: impl Fn(&mut A, &mut Resolver<'s>, SiteSamples<'_>),
    ) -> Result<Option<Damage>, Damage> {
        let Self {
            state,
            resolver,
            reader,
            sites,
            unknown,
        } = self;
        let records = reader.read(session.trace(), &block.block)?;
        let mut add_all = |resolver: &mut Resolver<'s>, target, offsets: &[u32]| {
            if let Some(samples) = SiteSamples::new(session, target, records, offsets) {
                add(state, resolver, samples);
            }
        };
        for record in Records::new(records) {
            if record.kind != RecordType::SAMPLE {
                continue;
            }
            let Some(TimedTarget { target, time }) = session.time_of_whole(record.body) else {
                *unknown += 1;
                continue;
            };
            if !filter.early(target, time) {
                continue;
            }
            if !filter.is_simple() {
                let hit = session.sample(record.body);
                if !hit.is_some_and(|hit| filter.late(target, &hit.sample, resolver)) {
                    continue;
                }
            }
            if let Some(full) = sites.add(session, target, record.offset as u32) {
                add_all(resolver, target, full);
                full.clear();
            }
        }
        sites.drain(|target, offsets| add_all(resolver, target, offsets));
        Ok(reader.cut().cloned())
    }
}

/// Samples of one site that are read together at most: few enough that their records stay in the cache.
const TOGETHER: usize = 256;

/// Offsets of records of a block by event and site, until there are enough of one to be read together.
#[derive(Debug, Default)]
pub(crate) struct SiteRecords {
    /// Offsets of the samples of each site, then of those of each event whose ids do not say the site.
    offsets: Vec<Vec<u32>>,
    /// The places that are not empty, or were not when they were noted.
    used: Vec<(usize, SampleTarget)>,
}

impl SiteRecords {
    /// Adds a record; returns those of its site, if they are enough.
    #[inline]
    pub(crate) fn add(
        &mut self,
        session: &TraceSession,
        target: SampleTarget,
        offset: u32,
    ) -> Option<&mut Vec<u32>> {
        let place = match target.site {
            Some(site) => site as usize,
            None => session.events().sites.len() + target.event as usize,
        };
        if place >= self.offsets.len() {
            self.offsets.resize_with(place + 1, Vec::new);
        }
        let offsets = self.offsets.get_mut(place)?;
        if offsets.is_empty() {
            self.used.push((place, target));
        }
        offsets.push(offset);
        (offsets.len() >= TOGETHER).then_some(offsets)
    }

    /// Takes all out.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(SampleTarget, &[u32])) {
        for (place, target) in self.used.drain(..) {
            if let Some(offsets) = self.offsets.get_mut(place).filter(|all| !all.is_empty()) {
                take(target, offsets);
                offsets.clear();
            }
        }
    }
}

//! Samples in any order: blocks in parallel, each thread with a state of its own that is merged at the end.

use rayon::prelude::*;
use usdtrec_format::perf::{RecordType, Records, Sample};
use usdtrec_format::trace::{BlockReader, Damage};

use crate::added::added_of;
use crate::calls::ScriptCalls;
use crate::events::order::{Window, in_order};
use crate::events::outcome::ReadOutcome;
use crate::events::selection::SampleFilter;
use crate::pool::Pool;
use crate::session::TraceSession;
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
    unknown: u64,
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
        return fold_in_context(session, filter, None, make, add);
    }
    let workers = Pool::default();
    let one = |block: &SampleBlock| {
        if stop() {
            return None;
        }
        let mut worker = workers.take().unwrap_or_else(|| Worker {
            state: make(),
            resolver: Resolver::new(session),
            reader: BlockReader::new(),
            unknown: 0,
        });
        let done = worker.block(session, filter, block, &add);
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

/// Adds every sample that passes the filter to one of several states, which `make` makes; returns them.
pub fn fold<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
) -> Folded<A> {
    fold_until(session, filter, || false, make, add)
}

/// As [`fold`], with the functions of scripts that threads are in: the resolver has those of each sample. Blocks are read in the order of time.
pub fn fold_called<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    calls: &ScriptCalls,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
) -> Folded<A> {
    fold_in_context(session, filter, Some(calls), make, add)
}

/// As [`fold`], with what is known of each sample from others. Blocks are read in the order of time.
fn fold_in_context<'s, A: Send>(
    session: &'s TraceSession,
    filter: &SampleFilter,
    calls: Option<&ScriptCalls>,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
) -> Folded<A> {
    let workers = Pool::default();
    let show = |window: Window<'_>| {
        let mut worker = workers
            .take()
            .unwrap_or_else(|| (make(), Resolver::new(session)));
        let (state, resolver) = &mut worker;
        let mut unknown = 0;
        for number in 0..window.sample_count() {
            let found = window.get(number).unwrap_or_default();
            match session.sample(found.body) {
                Some(ParsedHit { target, sample }) => {
                    resolver.set_context(window.context(number));
                    add(state, resolver, target, &sample);
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

impl<'s, A> Worker<'s, A> {
    fn block(
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
}

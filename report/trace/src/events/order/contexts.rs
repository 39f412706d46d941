//! What is known of samples from other samples, window by window: the functions of scripts that threads are in, and the values of arguments that
//! were added to events.

use std::sync::Arc;

use rayon::prelude::*;

use crate::added::added_argument::AddedValues;
use crate::added::hit_step::{HitStep, StepPlace};
use crate::added::{AddedArguments, AddedState};
use crate::calls::ScriptCalls;
use crate::calls::function::FunctionText;
use crate::calls::paths::CallPath;
use crate::calls::threads::{CallHit, CallThreads};
use crate::events::order::pending::{LoadedBlock, SampleEntry, record_at};
use crate::events::selection::SampleFilter;
use crate::pool::Pool;
use crate::session::TraceSession;
use crate::session::hit::{Hit, ParsedHit};
use crate::session::hit_context::HitContext;
use crate::session::resolver::Resolver;

/// What contexts are made of.
#[derive(Clone, Copy)]
pub(crate) struct ContextSources<'c> {
    /// The calls of scripts, if their functions are requested.
    pub(crate) calls: Option<&'c ScriptCalls>,
    /// The arguments that were added to events, if any were.
    pub(crate) added: Option<&'c dyn AddedArguments>,
}

impl ContextSources<'_> {
    /// Whether there is nothing to be known.
    pub(crate) const fn is_empty(self) -> bool {
        self.calls.is_none() && self.added.is_none()
    }

    /// Whether hits of an event change what is known of others.
    fn has(self, event: usize) -> bool {
        self.calls.is_some_and(|calls| calls.has(event))
            || self.added.is_some_and(|added| added.has(event))
    }

    /// The filter for what is read: hits that are not shown change what is known of those that are.
    pub(crate) fn relaxed(self, filter: &SampleFilter, session: &TraceSession) -> SampleFilter {
        let relaxed = filter.relaxed(|event| filter.event(event) || self.has(event));
        match self.added.is_some() && session.is_whole() {
            true => relaxed.starting_at_zero(),
            false => relaxed,
        }
    }
}

/// The state between windows.
pub(crate) struct Contexts<'c> {
    session: &'c TraceSession,
    filter: &'c SampleFilter,
    sources: ContextSources<'c>,
    threads: Option<CallThreads<'c>>,
    added: Option<Box<dyn AddedState>>,
    workers: Pool<Worker<'c>>,
}

/// State of a thread of ours.
struct Worker<'c> {
    resolver: Resolver<'c>,
    text: FunctionText,
}

/// Samples that are shown, each with what is known of it; lists of what is not requested are empty.
#[derive(Debug, Default)]
pub(crate) struct ContextSamples {
    pub(crate) entries: Vec<SampleEntry>,
    pub(crate) paths: Vec<CallPath>,
    pub(crate) added: Vec<Option<Arc<AddedValues>>>,
}

/// What a sample does; `None` of one that is cut short.
type Steps = Option<SampleSteps>;

/// What a sample does to what is known of it and of later ones.
struct SampleSteps {
    call: Option<CallHit>,
    /// `None` if no arguments were added to events.
    added: Option<AddedSteps>,
    /// Whether it is shown, as far as the filter needs no argument that was added.
    shown: bool,
}

/// What a sample says of arguments that were added.
struct AddedSteps {
    place: StepPlace,
    steps: Vec<HitStep>,
}

impl<'c> Contexts<'c> {
    pub(crate) fn new(
        session: &'c TraceSession,
        filter: &'c SampleFilter,
        sources: ContextSources<'c>,
    ) -> Self {
        Self {
            session,
            filter,
            sources,
            threads: sources.calls.map(|calls| CallThreads::new(session, calls)),
            added: sources.added.map(|added| added.begin(session)),
            workers: Pool::default(),
        }
    }

    /// The samples of pieces, one after the other in time, that are shown.
    pub(crate) fn find(
        &mut self,
        blocks: &[LoadedBlock],
        pieces: &[&[SampleEntry]],
    ) -> Vec<ContextSamples> {
        let steps = pieces.par_iter().map(|piece| self.steps(blocks, piece));
        let steps: Vec<Vec<Steps>> = steps.collect();
        let both = pieces.iter().zip(steps);
        let known = both.map(|(piece, steps)| self.take(piece, steps));
        let known: Vec<ContextSamples> = known.collect();
        if !self.filters_late() {
            return known;
        }
        let shown = known
            .into_par_iter()
            .map(|samples| self.shown(blocks, samples));
        shown.collect()
    }

    /// Whether the filter may be about arguments that were added, which are not known before all samples before were taken.
    fn filters_late(&self) -> bool {
        !self.filter.is_simple() && self.sources.added.is_some()
    }

    fn worker(&self) -> Worker<'c> {
        self.workers.take().unwrap_or_else(|| Worker {
            resolver: Resolver::new(self.session),
            text: FunctionText::default(),
        })
    }

    /// What samples do, which needs their arguments and not their order.
    fn steps(&self, blocks: &[LoadedBlock], piece: &[SampleEntry]) -> Vec<Steps> {
        let mut worker = self.worker();
        let Worker { resolver, text } = &mut worker;
        let steps = piece.iter().map(|entry| {
            let ParsedHit { target, sample } = self.session.sample(body(blocks, entry)?)?;
            let call = self
                .sources
                .calls
                .map(|calls| CallHit::new(calls.step(resolver, target, &sample, text), &sample));
            let event = target.event as usize;
            let hit = Hit {
                target,
                sample: &sample,
            };
            let added = self.sources.added.map(|added| AddedSteps {
                place: StepPlace::new(resolver, &sample),
                steps: match added.has(event) {
                    true => added.steps(resolver, hit),
                    false => Vec::new(),
                },
            });
            let shown = self.filter.early(target, sample.time)
                && (self.filter.is_simple()
                    || self.filters_late()
                    || self.filter.late(target, &sample, resolver));
            Some(SampleSteps { call, added, shown })
        });
        let steps = steps.collect();
        self.workers.put(worker);
        steps
    }

    /// What needs their order. Samples that are not shown are left out, as far as that is known.
    fn take(&mut self, piece: &[SampleEntry], steps: Vec<Steps>) -> ContextSamples {
        let mut samples = ContextSamples::default();
        for (entry, steps) in piece.iter().zip(steps) {
            let (mut path, mut values) = (CallPath::EMPTY, None);
            // One that is cut short is counted where samples are shown.
            let is_shown = steps.as_ref().is_none_or(|steps| steps.shown);
            if let Some(SampleSteps { call, added, .. }) = steps {
                if let (Some(threads), Some(hit)) = (&mut self.threads, call) {
                    path = threads.take(hit);
                }
                if let (Some(state), Some(AddedSteps { place, steps })) = (&mut self.added, added) {
                    values = state.take(place, steps);
                }
            }
            if !is_shown {
                continue;
            }
            samples.entries.push(*entry);
            if self.threads.is_some() {
                samples.paths.push(path);
            }
            if self.added.is_some() {
                samples.added.push(values);
            }
        }
        samples
    }

    /// Those samples for which an expression is true that may be about arguments which were added.
    fn shown(&self, blocks: &[LoadedBlock], samples: ContextSamples) -> ContextSamples {
        let mut worker = self.worker();
        let resolver = &mut worker.resolver;
        let mut shown = ContextSamples::default();
        let mut paths = samples.paths.into_iter();
        let mut added = samples.added.into_iter();
        for entry in samples.entries {
            let (path, values) = (paths.next(), added.next());
            let parsed = body(blocks, &entry).and_then(|body| self.session.sample(body));
            // One that is cut short is counted where samples are shown.
            let is_shown = parsed.is_none_or(|ParsedHit { target, sample }| {
                resolver.set_context(HitContext {
                    path,
                    added: values.as_ref().and_then(Option::as_ref),
                });
                self.filter.late(target, &sample, resolver)
            });
            if is_shown {
                shown.entries.push(entry);
                shown.paths.extend(path);
                shown.added.extend(values);
            }
        }
        self.workers.put(worker);
        shown
    }

    /// All samples were taken.
    pub(crate) fn finish(self) {
        if let Some(threads) = self.threads {
            threads.finish();
        }
    }
}

/// The body of a sample's record.
fn body<'b>(blocks: &'b [LoadedBlock], entry: &SampleEntry) -> Option<&'b [u8]> {
    let block = blocks.get(entry.slot as usize)?;
    record_at(&block.bytes, entry.offset)
}

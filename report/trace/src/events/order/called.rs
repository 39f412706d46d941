//! The functions of scripts that threads are in, window by window.

use rayon::prelude::*;

use crate::calls::function::FunctionText;
use crate::calls::paths::CallPath;
use crate::calls::threads::{CallHit, CallThreads};
use crate::calls::{CallStep, ScriptCalls};
use crate::events::order::pending::{LoadedBlock, SampleEntry, record_at};
use crate::events::selection::SampleFilter;
use crate::pool::Pool;
use crate::session::TraceSession;
use crate::session::hit::ParsedHit;
use crate::session::resolver::Resolver;

/// The state between windows.
pub(crate) struct Called<'c> {
    session: &'c TraceSession,
    filter: &'c SampleFilter,
    calls: &'c ScriptCalls,
    threads: CallThreads<'c>,
    workers: Pool<Worker<'c>>,
}

/// State of a thread of ours.
struct Worker<'c> {
    resolver: Resolver<'c>,
    text: FunctionText,
}

/// Samples that are shown, each with its path of calls.
#[derive(Debug, Default)]
pub(crate) struct CalledSamples {
    pub(crate) entries: Vec<SampleEntry>,
    pub(crate) paths: Vec<CallPath>,
}

/// What a sample does, and whether it is shown; `None` of one that is cut short.
type Step = (Option<CallHit>, bool);

impl<'c> Called<'c> {
    pub(crate) fn new(
        session: &'c TraceSession,
        filter: &'c SampleFilter,
        calls: &'c ScriptCalls,
    ) -> Self {
        Self {
            session,
            filter,
            calls,
            threads: CallThreads::new(session, calls),
            workers: Pool::default(),
        }
    }

    /// The samples of pieces, one after the other in time, that are shown.
    pub(crate) fn find(
        &mut self,
        blocks: &[LoadedBlock],
        pieces: &[&[SampleEntry]],
    ) -> Vec<CalledSamples> {
        let steps = pieces.par_iter().map(|piece| self.steps(blocks, piece));
        let steps: Vec<Vec<Step>> = steps.collect();
        let both = pieces.iter().zip(steps);
        both.map(|(piece, steps)| self.take(piece, steps)).collect()
    }

    /// What samples do, which needs their arguments and not their order.
    fn steps(&self, blocks: &[LoadedBlock], piece: &[SampleEntry]) -> Vec<Step> {
        let mut worker = self.workers.take().unwrap_or_else(|| Worker {
            resolver: Resolver::new(self.session),
            text: FunctionText::default(),
        });
        let steps = piece.iter().map(|entry| {
            let body = blocks
                .get(entry.slot as usize)
                .and_then(|block| record_at(&block.bytes, entry.offset));
            let Some(ParsedHit { target, sample }) =
                body.and_then(|body| self.session.sample(body))
            else {
                return (None, true);
            };
            let Worker { resolver, text } = &mut worker;
            let step = self.calls.step(resolver, target, &sample, text);
            let shown = self.filter.early(target, sample.time)
                && (self.filter.is_simple() || self.filter.late(target, &sample, resolver));
            let matters = shown || step != CallStep::Stay;
            (matters.then(|| CallHit::new(step, &sample)), shown)
        });
        let steps = steps.collect();
        self.workers.put(worker);
        steps
    }

    /// What needs their order.
    fn take(&mut self, piece: &[SampleEntry], steps: Vec<Step>) -> CalledSamples {
        let mut samples = CalledSamples::default();
        for (entry, (hit, shown)) in piece.iter().zip(steps) {
            let path = hit.map_or(CallPath::EMPTY, |hit| self.threads.take(hit));
            if shown {
                samples.entries.push(*entry);
                samples.paths.push(path);
            }
        }
        samples
    }

    /// All samples were taken.
    pub(crate) fn finish(self) {
        self.threads.finish();
    }
}

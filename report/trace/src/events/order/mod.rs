//! Samples in the order of time, without sorting the trace and in bounded memory.
//!
//! Blocks are taken in the order of their earliest sample (or, where the file can only be read from front to
//! back, in its own), a batch at a time, read and sorted each for itself in parallel. Samples before the earliest one of all blocks not yet read are settled:
//!
//! ```text
//!  block 1  |=========|
//!  block 2      |=========|
//!  block 3         |===========|
//!  block 4                  |========|      not yet read
//!           ^^^^^^^^^^^^^^^^^ settled: shown; the rest stays until the next batch
//! ```
//!
//! The settled part is divided into windows of time, which are merged and shown in parallel. Of equal times
//! the order of the file decides. In memory are a batch and the blocks that reach beyond it; a trace whose
//! blocks all overlap would be wholly in memory, so that beyond `MAX_PENDING` bytes the oldest
//! samples are shown although an earlier one may follow.

mod batches;
pub mod before;
pub(crate) mod contexts;
pub(crate) mod pending;
pub mod place;
pub mod records;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rayon::prelude::*;

use crate::added::added_argument::AddedValues;
use crate::added::added_of;
use crate::calls::ScriptCalls;
use crate::calls::paths::CallPath;
use crate::events::order::batches::{Batches, PlannedBlock};
use crate::events::order::before::PreviousTimes;
use crate::events::order::contexts::{ContextSamples, ContextSources, Contexts};
use crate::events::order::pending::{
    LoadedBlock, Mark, SampleEntry, WindowPart, load, merged, record_at, samples, windows,
};
use crate::events::order::place::{PlacedBody, SamplePlace};
use crate::events::outcome::ReadOutcome;
use crate::events::selection::SampleFilter;
use crate::session::TraceSession;
use crate::session::hit_context::HitContext;
use crate::session::scan::SampleBlock;

/// Samples in a window at most.
const WINDOW: usize = 2048;
/// Samples in a window at least, if there are enough: threads share a batch of few large samples, too.
const MIN_WINDOW: usize = 16;
/// Windows that are shown in parallel before their results are taken.
const AT_ONCE: usize = 256;
/// The same where samples are shown with what is known of them from others, which takes more memory for each.
const IN_CONTEXT_AT_ONCE: usize = 64;

/// Samples of a window: the blocks that they are in, and where.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    pub(crate) blocks: &'a [LoadedBlock],
    pub(crate) entries: &'a [SampleEntry],
    /// The state before these samples.
    pub before: PreviousTimes,
    /// For each sample, the functions of the script that its thread is in; empty if they are not requested.
    pub(crate) paths: &'a [CallPath],
    /// For each sample, the values of the arguments that were added to its event; empty if none were.
    pub(crate) added: &'a [Option<Arc<AddedValues>>],
}

impl<'a> Window<'a> {
    /// The bodies of the samples' records, in order.
    #[inline]
    pub fn bodies(self) -> impl Iterator<Item = &'a [u8]> {
        self.entries
            .iter()
            .filter_map(move |entry| Some(self.sample(entry)?.body))
    }

    /// Number of its samples.
    pub const fn sample_count(self) -> usize {
        self.entries.len()
    }

    /// The sample at a place.
    #[inline]
    pub fn get(self, number: usize) -> Option<PlacedBody<'a>> {
        self.sample(self.entries.get(number)?)
    }

    /// The records of the block that one of them is in, and the offset of its own among them.
    pub(crate) fn record(self, number: usize) -> Option<(&'a [u8], &'a u32)> {
        let entry = self.entries.get(number)?;
        let loaded = self.blocks.get(entry.slot as usize)?;
        Some((&loaded.bytes, &entry.offset))
    }

    /// What is known of one of them from other samples.
    #[inline]
    pub fn context(self, number: usize) -> HitContext<'a> {
        HitContext {
            path: self.paths.get(number).copied(),
            added: self.added.get(number).and_then(Option::as_ref),
        }
    }

    #[inline]
    fn sample(self, entry: &SampleEntry) -> Option<PlacedBody<'a>> {
        let loaded = self.blocks.get(entry.slot as usize)?;
        Some(PlacedBody {
            body: record_at(&loaded.bytes, entry.offset)?,
            place: SamplePlace {
                block: loaded.block as u32,
                offset: entry.offset,
            },
        })
    }
}

/// Walks over the samples that pass the filter in the order of time: `show` is called in parallel, each
/// time with the samples of a window; `take` gets its results one after the other. Where `calls` are given, windows have the functions that threads are
/// in; where arguments were added to events, their values.
///
/// # Errors
/// The first error of `take`, which ends the walk.
pub fn in_order<R: Send, E>(
    session: &TraceSession,
    filter: &SampleFilter,
    calls: Option<&ScriptCalls>,
    show: impl Fn(Window<'_>) -> R + Sync,
    take: impl FnMut(R) -> Result<(), E>,
) -> Result<ReadOutcome, E> {
    let added = added_of(session);
    let sources = ContextSources { calls, added };
    ordered(session, filter, sources, show, take)
}

/// As [`in_order`], without the values of arguments that were added to events.
///
/// # Errors
/// The first error of `take`, which ends the walk.
pub fn in_plain_order<R: Send, E>(
    session: &TraceSession,
    filter: &SampleFilter,
    show: impl Fn(Window<'_>) -> R + Sync,
    take: impl FnMut(R) -> Result<(), E>,
) -> Result<ReadOutcome, E> {
    let sources = ContextSources {
        calls: None,
        added: None,
    };
    ordered(session, filter, sources, show, take)
}

fn ordered<R: Send, E>(
    session: &TraceSession,
    filter: &SampleFilter,
    sources: ContextSources<'_>,
    show: impl Fn(Window<'_>) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<ReadOutcome, E> {
    let mut outcome = ReadOutcome::default();
    let read = (!sources.is_empty()).then(|| sources.relaxed(filter, session));
    let read = read.as_ref().unwrap_or(filter);
    let mut batches = Batches::new(session, plan(session, read));
    let load = |planned: &PlannedSamples<'_>, reader: &mut _, loaded: &mut _| {
        let done = load(session, read, planned.block, reader, loaded);
        session.note_read(planned.block);
        done
    };
    let mut contexts = (!sources.is_empty()).then(|| Contexts::new(session, filter, sources));
    let mut before = PreviousTimes::default();
    while batches.next(load, &mut outcome) {
        let ends = batches.settled(&mut outcome);
        let size = window_size(batches.pending(), &ends);
        let windows = windows(batches.pending(), &ends, size);
        let pending = Pending {
            session,
            blocks: batches.pending(),
            before: &mut before,
        };
        match &mut contexts {
            Some(contexts) => show_in_context(pending, &windows, contexts, &show, &mut take)?,
            None => show_all(pending, &windows, &show, &mut take)?,
        }
        batches.forget(&ends);
    }
    if let Some(contexts) = contexts {
        contexts.finish();
    }
    Ok(outcome)
}

/// Samples in each window of those up to `ends` of each block, so that each thread has one.
fn window_size(blocks: &[LoadedBlock], ends: &[usize]) -> usize {
    let due = blocks.iter().zip(ends);
    let due = due.map(|(block, end)| end.saturating_sub(block.shown));
    let share = due.sum::<usize>().div_ceil(rayon::current_num_threads());
    share.clamp(MIN_WINDOW, WINDOW)
}

/// What windows are about.
struct Pending<'a> {
    session: &'a TraceSession,
    /// The blocks that samples of the windows are in.
    blocks: &'a [LoadedBlock],
    /// The state before the windows; afterwards, the state before the next ones.
    before: &'a mut PreviousTimes,
}

/// Shows some windows in parallel, takes their results, and continues with the next.
fn show_all<R: Send, E>(
    pending: Pending<'_>,
    windows: &[Vec<WindowPart>],
    show: &(impl Fn(Window<'_>) -> R + Sync),
    take: &mut impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let Pending {
        session,
        blocks,
        before,
    } = pending;
    let show = |entries: &[SampleEntry], before: PreviousTimes| {
        show(Window {
            blocks,
            entries,
            before,
            paths: &[],
            added: &[],
        })
    };
    let small = |window: &Vec<WindowPart>| is_small(window);
    let runs = windows.chunk_by(|a, b| small(a) && small(b));
    for group in runs.flat_map(|run| run.chunks(AT_ONCE)) {
        if group.iter().all(small) {
            let windows = group.iter().map(|window| {
                let before = before.pass_window(session, blocks, window);
                (window, before)
            });
            let windows: Vec<_> = windows.collect();
            let one = |(window, before): &(&Vec<WindowPart>, PreviousTimes)| {
                show(&merged(blocks, window), *before)
            };
            let shown: Vec<R> = windows.par_iter().map(one).collect();
            shown.into_iter().try_for_each(&mut *take)?;
            continue;
        }
        // Very many samples of one time.
        for window in group {
            for pieces in merged(blocks, window).chunks(AT_ONCE * WINDOW) {
                let pieces = pieces.chunks(WINDOW).map(|piece| {
                    let before = before.pass_entries(session, blocks, piece);
                    (piece, before)
                });
                let pieces: Vec<_> = pieces.collect();
                let one = |(piece, before): &(&[SampleEntry], PreviousTimes)| show(piece, *before);
                let shown: Vec<R> = pieces.par_iter().map(one).collect();
                shown.into_iter().try_for_each(&mut *take)?;
            }
        }
    }
    Ok(())
}

/// Whether a window is one that need not be divided.
fn is_small(window: &[WindowPart]) -> bool {
    samples(window) <= 4 * WINDOW
}

/// As [`show_all`], after finding what is known of samples from others.
fn show_in_context<R: Send, E>(
    pending: Pending<'_>,
    windows: &[Vec<WindowPart>],
    contexts: &mut Contexts<'_>,
    show: &(impl Fn(Window<'_>) -> R + Sync),
    take: &mut impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let blocks = pending.blocks;
    let runs = windows.chunk_by(|a, b| is_small(a) && is_small(b));
    for group in runs.flat_map(|run| run.chunks(AT_ONCE)) {
        let merged = group.par_iter().map(|window| merged(blocks, window));
        let merged: Vec<Vec<SampleEntry>> = merged.collect();
        // One window alone may be larger: very many samples of one time.
        let pieces = merged.iter().flat_map(|window| window.chunks(4 * WINDOW));
        let pieces: Vec<&[SampleEntry]> = pieces.collect();
        for pieces in pieces.chunks(IN_CONTEXT_AT_ONCE) {
            let found = contexts.find(blocks, pieces);
            let found = found.into_iter().map(|piece| {
                let before = pending
                    .before
                    .pass_entries(pending.session, blocks, &piece.entries);
                (piece, before)
            });
            let found: Vec<_> = found.collect();
            let one = |(piece, before): &(ContextSamples, PreviousTimes)| {
                show(Window {
                    blocks,
                    entries: &piece.entries,
                    before: *before,
                    paths: &piece.paths,
                    added: &piece.added,
                })
            };
            let shown: Vec<R> = found.par_iter().map(one).collect();
            shown.into_iter().try_for_each(&mut *take)?;
        }
    }
    Ok(())
}

/// A block with samples.
#[derive(Clone, Copy, Debug)]
struct PlannedSamples<'s> {
    /// Its index in the file.
    index: usize,
    block: &'s SampleBlock,
}

impl PlannedBlock for PlannedSamples<'_> {
    fn mark(&self) -> Mark {
        Mark {
            time: self.block.time.first,
            block: self.index,
        }
    }

    fn bytes(&self) -> u64 {
        self.block.bytes
    }
}

/// The blocks with samples that are selected, in the order of the file.
fn plan<'s>(session: &'s TraceSession, filter: &SampleFilter) -> Vec<PlannedSamples<'s>> {
    let is_serial = session.trace().is_serial();
    let blocks = session.blocks().iter().enumerate();
    let asked = blocks.filter(|(_, block)| is_serial || filter.block(block));
    let planned = asked.map(|(index, block)| PlannedSamples { index, block });
    planned.collect()
}

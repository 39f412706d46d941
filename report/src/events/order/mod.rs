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
//! blocks all overlap would be wholly in memory, so that beyond [`MOST_PENDING`] bytes the oldest
//! samples are shown although an earlier one may follow.

pub(crate) mod before;
pub(crate) mod called;
pub(crate) mod load;
pub(crate) mod pending;
pub(crate) mod place;
pub(crate) mod records;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use usdtrec_format::trace::{BlockReader, Damage};

use crate::events::order::before::PreviousTimes;
use crate::events::order::called::{Called, CalledSamples};
use crate::events::order::pending::{
    LoadedBlock, Mark, SampleEntry, WindowPart, merged, record_at, samples, windows,
};
use crate::events::order::place::{PlacedBody, SamplePlace};
use crate::events::outcome::Outcome;
use crate::events::selection::SampleFilter;
use crate::pool::Pool;
use crate::trace::calls::ScriptCalls;
use crate::trace::calls::paths::CallPath;
use crate::trace::session::TraceSession;
use crate::trace::session::scan::SampleBlock;

/// Bytes of records in a batch for each thread.
const BATCH: u64 = 1 << 20;
/// Samples in a window.
const WINDOW: usize = 2048;
/// Windows that are shown in parallel before their results are taken.
const AT_ONCE: usize = 256;
/// Bytes of records that wait at most.
const MOST_PENDING: usize = 1 << 30;

/// Samples of a window: the blocks that they are in, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) blocks: &'a [LoadedBlock],
    pub(crate) entries: &'a [SampleEntry],
    /// The state before these samples.
    pub(crate) before: PreviousTimes,
    /// For each sample, the functions of the script that its thread is in; empty if they are not requested.
    pub(crate) paths: &'a [CallPath],
}

impl<'a> Window<'a> {
    /// The bodies of the samples' records, in order.
    #[inline]
    pub(crate) fn bodies(self) -> impl Iterator<Item = &'a [u8]> {
        self.entries
            .iter()
            .filter_map(move |entry| Some(self.sample(entry)?.body))
    }

    /// Number of its samples.
    pub(crate) const fn len(self) -> usize {
        self.entries.len()
    }

    /// The sample at a place.
    #[inline]
    pub(crate) fn get(self, number: usize) -> Option<PlacedBody<'a>> {
        self.sample(self.entries.get(number)?)
    }

    /// The functions of the script that the thread of one of them is in; `None` if they are not requested.
    #[inline]
    pub(crate) fn path(self, number: usize) -> Option<CallPath> {
        self.paths.get(number).copied()
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
/// time with the samples of a window; `take` gets its results one after the other. Where `calls` are given, windows have the functions that threads are in.
///
/// # Errors
/// The first error of `take`, which ends the walk.
pub(crate) fn in_order<R: Send, E>(
    session: &TraceSession,
    filter: &SampleFilter,
    calls: Option<&ScriptCalls>,
    show: impl Fn(Window<'_>) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    // Calls and returns that are not shown change the stacks of what is.
    let read = calls.map(|calls| filter.relaxed(|event| filter.event(event) || calls.has(event)));
    let mut walk = Walk::new(session, read.as_ref().unwrap_or(filter));
    let mut called = calls.map(|calls| Called::new(session, filter, calls));
    let mut before = PreviousTimes::default();
    while walk.next_batch(&mut outcome) {
        let ends = walk.settled(&mut outcome);
        let windows = windows(&walk.pending, &ends, WINDOW);
        let pending = Pending {
            session,
            blocks: &walk.pending,
            before: &mut before,
        };
        match &mut called {
            Some(called) => show_called(pending, &windows, called, &show, &mut take)?,
            None => show_all(pending, &windows, &show, &mut take)?,
        }
        walk.forget(&ends);
    }
    if let Some(called) = called {
        called.finish();
    }
    Ok(outcome)
}

/// What windows are about.
struct Pending<'a> {
    session: &'a TraceSession,
    /// The blocks that samples of the windows are in.
    blocks: &'a [LoadedBlock],
    /// The state before the windows; afterwards, the state before the next ones.
    before: &'a mut PreviousTimes,
}

/// Shows some windows in parallel, takes their results, and goes on with the next.
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

/// As [`show_all`], after finding the functions that threads are in.
fn show_called<R: Send, E>(
    pending: Pending<'_>,
    windows: &[Vec<WindowPart>],
    called: &mut Called<'_>,
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
        for pieces in pieces.chunks(AT_ONCE) {
            let found = called.find(blocks, pieces);
            let found = found.into_iter().map(|piece| {
                let before = pending
                    .before
                    .pass_entries(pending.session, blocks, &piece.entries);
                (piece, before)
            });
            let found: Vec<_> = found.collect();
            let one = |(piece, before): &(CalledSamples, PreviousTimes)| {
                show(Window {
                    blocks,
                    entries: &piece.entries,
                    before: *before,
                    paths: &piece.paths,
                })
            };
            let shown: Vec<R> = found.par_iter().map(one).collect();
            shown.into_iter().try_for_each(&mut *take)?;
        }
    }
    Ok(())
}

/// The state of a walk.
struct Walk<'s> {
    session: &'s TraceSession,
    filter: &'s SampleFilter,
    /// Blocks with their index in the file: by their earliest time, or in the order of the file where that is
    /// the only one in which they can be read.
    plan: Vec<(usize, &'s SampleBlock)>,
    /// For each place in the plan, the first mark of the blocks from there on.
    marks: Vec<Mark>,
    /// Blocks of the plan that are read.
    read: usize,
    /// Blocks in memory, in the order of the file.
    pending: Vec<LoadedBlock>,
    /// Buffers to be used again.
    spare: Vec<LoadedBlock>,
    readers: Pool<BlockReader>,
    /// Bytes of records in a batch.
    batch: u64,
}

impl<'s> Walk<'s> {
    fn new(session: &'s TraceSession, filter: &'s SampleFilter) -> Self {
        let is_serial = session.trace().is_serial();
        let blocks = session.blocks().iter().enumerate();
        let asked = blocks.filter(|(_, block)| is_serial || filter.block(block));
        let mut plan: Vec<_> = asked.collect();
        if !is_serial {
            plan.sort_by_key(|(_, block)| block.time.first);
        }
        let mut marks: Vec<Mark> = plan
            .iter()
            .map(|(index, block)| Mark {
                time: block.time.first,
                block: *index,
            })
            .collect();
        for at in (1..marks.len()).rev() {
            marks[at - 1] = marks[at - 1].min(marks[at]);
        }
        Self {
            session,
            filter,
            plan,
            marks,
            read: 0,
            pending: Vec::new(),
            spare: Vec::new(),
            readers: Pool::default(),
            batch: BATCH * rayon::current_num_threads() as u64,
        }
    }

    /// Reads the next blocks; `false` if all is read and shown.
    fn next_batch(&mut self, outcome: &mut Outcome) -> bool {
        if self.read == self.plan.len() {
            return !self.pending.is_empty();
        }
        let mut bytes = 0;
        let rest = self.plan.get(self.read..).unwrap_or_default();
        let due = rest.iter().take_while(|(_, block)| {
            let fits = bytes < self.batch;
            bytes += block.bytes;
            fits
        });
        let jobs: Vec<_> = due
            .map(|&job| (job, self.spare.pop().unwrap_or_default()))
            .collect();
        self.read += jobs.len();
        let load = |((index, block), mut loaded): ((usize, &SampleBlock), LoadedBlock)| {
            loaded.block = index;
            let done = self.load(block, &mut loaded);
            (done, loaded)
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

    /// Reads a block; what is wrong with it costs only what it hits.
    fn load(&self, block: &SampleBlock, loaded: &mut LoadedBlock) -> Option<Damage> {
        let mut reader = self.readers.take().unwrap_or_default();
        let done = load::load(self.session, self.filter, block, &mut reader, loaded);
        self.session.note_read(block);
        let damage = match done {
            Ok(()) => reader.cut().cloned(),
            Err(damage) => Some(damage),
        };
        self.readers.put(reader);
        damage
    }

    /// For each block in memory, the number of samples that can be output.
    fn settled(&self, outcome: &mut Outcome) -> Vec<usize> {
        let mut mark = self.marks.get(self.read).copied();
        let bytes: usize = self.pending.iter().map(LoadedBlock::memory).sum();
        if mark.is_some() && bytes > MOST_PENDING {
            outcome.forced = true;
            mark = None;
        }
        self.pending
            .iter()
            .map(|block| block.before(mark))
            .collect()
    }

    /// Drops blocks that are shown completely.
    fn forget(&mut self, ends: &[usize]) {
        for (block, &end) in self.pending.iter_mut().zip(ends) {
            block.shown = end;
        }
        let shown = |block: &mut LoadedBlock| block.shown == block.keys.len();
        self.spare.extend(self.pending.extract_if(.., shown));
    }
}

//! Reading the blocks of a plan, a batch at a time.

use rayon::prelude::*;
use usdtrec_format::trace::{BlockReader, Damage};

use crate::events::order::pending::{LoadedBlock, Mark};
use crate::events::outcome::ReadOutcome;
use crate::pool::Pool;
use crate::session::TraceSession;

/// Bytes of records in a batch for each thread.
const BATCH: u64 = 1 << 20;
/// Bytes of records that wait at most.
pub(super) const MAX_PENDING: usize = 1 << 30;

/// A block that is to be read.
pub(crate) trait PlannedBlock: Copy + Send + Sync {
    /// The earliest time in it, and its index in the file.
    fn mark(&self) -> Mark;

    /// Bytes of its records.
    fn bytes(&self) -> u64;
}

/// The blocks of a plan: those in memory, and those that are not yet read.
pub(crate) struct Batches<'s, P> {
    session: &'s TraceSession,
    /// By their earliest time, or in the order of the file where that is the only one in which they can be read.
    plan: Vec<P>,
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

impl<'s, P: PlannedBlock> Batches<'s, P> {
    /// The blocks are given in the order of the file.
    pub(crate) fn new(session: &'s TraceSession, mut plan: Vec<P>) -> Self {
        if !session.trace().is_serial() {
            plan.sort_by_key(|planned| planned.mark().time);
        }
        let mut marks: Vec<Mark> = plan.iter().map(PlannedBlock::mark).collect();
        for at in (1..marks.len()).rev() {
            marks[at - 1] = marks[at - 1].min(marks[at]);
        }
        Self {
            session,
            plan,
            marks,
            read: 0,
            pending: Vec::new(),
            spare: Vec::new(),
            readers: Pool::default(),
            batch: BATCH * rayon::current_num_threads() as u64,
        }
    }

    /// Blocks in memory, in the order of the file.
    pub(crate) fn pending(&self) -> &[LoadedBlock] {
        &self.pending
    }

    /// Reads the next blocks by `load`, which fills an empty block; `false` if all is read and taken. Damage costs only what it hits.
    pub(crate) fn next(
        &mut self,
        load: impl Fn(&P, &mut BlockReader, &mut LoadedBlock) -> Result<(), Damage> + Sync,
        outcome: &mut ReadOutcome,
    ) -> bool {
        if self.read == self.plan.len() {
            return !self.pending.is_empty();
        }
        let mut bytes = 0;
        let rest = self.plan.get(self.read..).unwrap_or_default();
        let due = rest.iter().take_while(|planned| {
            let fits = bytes < self.batch;
            bytes += planned.bytes();
            fits
        });
        let jobs: Vec<_> = due
            .map(|&planned| (planned, self.spare.pop().unwrap_or_default()))
            .collect();
        self.read += jobs.len();
        let readers = &self.readers;
        let load = |(planned, mut loaded): (P, LoadedBlock)| {
            loaded.reuse(planned.mark().block);
            let mut reader = readers.take().unwrap_or_default();
            let damage = match load(&planned, &mut reader, &mut loaded) {
                Ok(()) => reader.cut().cloned(),
                Err(damage) => Some(damage),
            };
            readers.put(reader);
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

    /// For each block in memory, the number of records that can be taken.
    pub(crate) fn settled(&self, outcome: &mut ReadOutcome) -> Vec<usize> {
        let mut mark = self.marks.get(self.read).copied();
        let bytes: usize = self.pending.iter().map(LoadedBlock::memory).sum();
        if mark.is_some() && bytes > MAX_PENDING {
            outcome.forced = true;
            mark = None;
        }
        let pending = self.pending.iter();
        pending.map(|block| block.before(mark)).collect()
    }

    /// Drops blocks that are taken completely.
    pub(crate) fn forget(&mut self, ends: &[usize]) {
        for (block, &end) in self.pending.iter_mut().zip(ends) {
            block.shown = end;
        }
        let taken = |block: &mut LoadedBlock| block.shown == block.keys.len();
        self.spare.extend(self.pending.extract_if(.., taken));
    }
}

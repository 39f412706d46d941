//! Draining the rings: passes over them, until the end of the recording.
//!
//! A pass reads what the rings contain when it begins, so hits that arrive faster than they are read do not make it
//! endless.

use std::time::{Duration, Instant};

use usdtrec_kernel::bpf::rings::Left;

use super::super::outcome::EngineOutcome;
use super::super::release::Release;
use super::bpf_engine::BpfEngine;
use super::part::Parts;
use super::samples::stack_size::StackUse;

/// Size of the batches of records that are passed on, bytes.
const BATCH: usize = 256 << 10;
/// Fill level of a ring, in 256ths, from which on the next pass begins without a pause.
const NO_PAUSE_FILL: u64 = 32;
/// How long to wait at the end for running programs and their records. Programs that take longer wait for memory that another process must
/// provide.
const LAST_RECORDS_LIMIT: Duration = Duration::from_secs(1);

impl BpfEngine {
    /// Passes complete records to `sink`, which returns what the stacks among them have needed. Returns whether many more have been written
    /// meanwhile.
    pub fn drain(&mut self, mut sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>) -> bool {
        if let Some(executables) = &mut self.objects.executables {
            executables.look();
        }
        self.pass(&mut sink) == Left::More && self.is_crowded()
    }

    /// Whether much was written since the last pass.
    pub(super) fn is_crowded(&self) -> bool {
        self.objects.rings.fullest() >= NO_PAUSE_FILL
    }

    /// The last pass, after [`disable`](Self::disable).
    pub fn end(
        &mut self,
        release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]),
    ) -> EngineOutcome {
        let mut sink = |records: &[u8]| {
            sink(records);
            Vec::new()
        };
        let unfinished = self.drain_last(release, &mut sink);
        self.drain(sink);
        self.outcome(unfinished)
    }

    /// Passes all records to `sink`, including those that are still being written: waits until `release` reports that no program runs any
    /// more, but not for long. Returns the number of records that were not complete in time.
    fn drain_last(
        &mut self,
        mut release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>,
    ) -> u64 {
        let begin = Instant::now();
        loop {
            let none_runs = match &mut release {
                Some(release) => release.wait(Duration::from_millis(1)),
                // A program that was running when the programs were disabled writes its record within microseconds.
                None => {
                    std::thread::sleep(Duration::from_millis(2));
                    true
                }
            };
            match self.pass(&mut sink) {
                Left::More => {}
                Left::Nothing if none_runs || begin.elapsed() >= LAST_RECORDS_LIMIT => return 0,
                Left::Busy if begin.elapsed() >= LAST_RECORDS_LIMIT => break,
                Left::Busy | Left::Nothing => {}
            }
        }
        let mut unfinished = 0;
        loop {
            let busy = self.objects.rings.pass_over_busy();
            if busy == 0 {
                return unfinished;
            }
            unfinished += busy;
            while self.pass(&mut sink) == Left::More {}
        }
    }

    /// Passes the records that are there now to `sink`, in batches. After each, the sizes of further stacks are chosen: a pass over full rings takes
    /// long.
    fn pass(&mut self, sink: &mut impl FnMut(&[u8]) -> Vec<(u64, StackUse)>) -> Left {
        let is_crowded = self.is_crowded();
        let Self {
            objects,
            parts,
            batch,
            ..
        } = self;
        objects.control.set_looked();
        let mut pass_on = |parts: &mut Parts, batch: &mut Vec<u8>| {
            parts.learn_stacks(sink(batch), is_crowded);
            batch.clear();
        };
        let mut left = objects.rings.drain(|record| {
            parts.append(record, batch);
            if batch.len() >= BATCH {
                pass_on(parts, batch);
            }
        });
        if let Some(waits) = objects.wait_events_mut() {
            left = left.max(waits.drain(batch, |batch| {
                if batch.len() >= BATCH {
                    pass_on(parts, batch);
                }
            }));
        }
        if !batch.is_empty() {
            pass_on(parts, batch);
        }
        parts.choose_stack_sizes(objects.rings.fullest() >= NO_PAUSE_FILL);
        left
    }
}

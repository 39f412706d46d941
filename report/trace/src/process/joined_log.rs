//! What a trace of several files says about its processes.
//!
//! Each file begins with the processes that run, as records without a time, which in a single file hold from the start:
//!
//! * Where a file continues the one before it, these records repeat what is known, and hold for processes of which nothing is known before.
//! * After a gap they hold from the end of the file before it on. A process of a number that is known continues: whether another one has the number
//!   now is not known.

use foldhash::HashSet;
use usdtrec_format::trace::{PartBegin, Trace, TracePart};

use crate::process::log::{Naming, Placing, ProcessLog, Renamed};
use crate::process::unaligned::PackedU64;

/// Shortfalls of one recording have smaller numbers.
const SHORTFALLS: u32 = 1024;

/// A log of processes that is put together from the blocks of all files, in their order.
#[derive(Debug)]
pub(crate) struct JoinedLog<'t> {
    log: ProcessLog,
    trace: &'t Trace,
    /// The file that the last block is in.
    part: usize,
    known: KnownNumbers,
    /// Recordings before that of the current file.
    recordings: u32,
}

/// Threads and processes that the files before the current one name.
#[derive(Debug, Default)]
struct KnownNumbers {
    threads: HashSet<i32>,
    processes: HashSet<i32>,
    /// Entries of the log that are in the sets.
    namings: usize,
    placings: usize,
}

impl KnownNumbers {
    /// Adds what the log has.
    fn learn(&mut self, log: &ProcessLog) {
        let namings = log.namings.get(self.namings..).unwrap_or_default();
        let placings = log.placings.get(self.placings..).unwrap_or_default();
        self.threads.extend(namings.iter().map(|naming| naming.tid));
        self.processes
            .extend(placings.iter().map(|placing| placing.pid));
        (self.namings, self.placings) = (log.namings.len(), log.placings.len());
    }
}

impl<'t> JoinedLog<'t> {
    /// An empty log, of which `log` is the start.
    pub(crate) fn new(trace: &'t Trace, log: ProcessLog) -> Self {
        Self {
            log,
            trace,
            part: 0,
            known: KnownNumbers::default(),
            recordings: 0,
        }
    }

    /// Appends what the block at an offset says.
    pub(crate) fn append(&mut self, offset: u64, mut content: ProcessLog) {
        if let Some(part) = self.trace.part_at(offset) {
            self.begin_parts(part);
            self.settle(&mut content);
        }
        self.log.append(content);
    }

    /// Changes that were left out because they would take too much memory.
    pub(crate) const fn left_out(&self) -> u64 {
        self.log.left_out()
    }

    /// The whole log.
    pub(crate) fn into_log(self) -> ProcessLog {
        self.log
    }

    /// Continues to a file.
    fn begin_parts(&mut self, part: usize) {
        if part == self.part {
            return;
        }
        self.known.learn(&self.log);
        let begun = self.trace.parts().get(self.part..=part);
        for pair in begun.unwrap_or_default().windows(2) {
            let [before, begun] = pair else { continue };
            if begun.begin() != PartBegin::Continued {
                let last = before.time().map(|time| time.last);
                self.log.pauses.end_recording(last);
                self.recordings = self.recordings.saturating_add(1);
            }
        }
        self.part = part;
    }

    /// Gives the records without a time their meaning in the current file.
    fn settle(&self, content: &mut ProcessLog) {
        let parts = self.trace.parts();
        let Some(part) = parts.get(self.part) else {
            return;
        };
        content.renumber_shortfalls(self.recordings.saturating_mul(SHORTFALLS));
        content
            .pauses
            .renumber(self.recordings, |id| part.sample_id(id));
        let threads = |naming: &Naming| self.known.threads.contains(&naming.tid);
        let processes = |placing: &Placing| self.known.processes.contains(&placing.pid);
        match part.begin() {
            PartBegin::First => {}
            PartBegin::Continued => {
                content
                    .namings
                    .retain(|naming| has_time(naming.time) || !threads(naming));
                content
                    .placings
                    .retain(|placing| has_time(placing.time) || !processes(placing));
            }
            PartBegin::After(_) | PartBegin::Later => {
                let before = self.part.checked_sub(1).and_then(|at| parts.get(at));
                let end = before.and_then(TracePart::time).map_or(0, |time| time.last);
                let from = PackedU64::from(end.saturating_add(1));
                content.namings.retain(|naming| {
                    let begins = !matches!(naming.change, Renamed::Name(_));
                    has_time(naming.time) || !begins || !threads(naming)
                });
                let times = content.namings.iter_mut().map(|naming| &mut naming.time);
                let placed = content.placings.iter_mut().map(|placing| &mut placing.time);
                for time in times.chain(placed).filter(|time| !has_time(**time)) {
                    *time = from;
                }
            }
        }
    }
}

fn has_time(time: PackedU64) -> bool {
    u64::from(time) != 0
}

//! Which threads live. What is known of the others is forgotten in a stream, which may never end.
//!
//! Data about processes are dropped some time after they end, except for mappings that running processes inherited.

use foldhash::{HashMap, HashSet};

use crate::process::log::LivingChange as Life;

/// Minimum number of changes between two clean-ups.
const MIN_CHANGES: usize = 4096;

/// The threads that live, and when it is time to forget the others.
#[derive(Debug, Default)]
pub(crate) struct LivingThreads {
    /// The process of each thread.
    pids: HashMap<i32, i32>,
    /// Changes since something was forgotten.
    changes: usize,
    /// Things known then.
    kept: usize,
}

impl LivingThreads {
    /// Takes notice of a change.
    pub(crate) fn note(&mut self, life: Life) {
        self.changes += 1;
        match life {
            Life::Thread { pid, tid } => self.begin(pid, tid),
            // That of a process whose threads are not known stays until its number is another one's.
            Life::Process(pid) => self.begin_process(pid),
            Life::Ended(tid) => self.end(tid),
        }
    }

    /// A thread lives.
    fn begin(&mut self, pid: i32, tid: i32) {
        self.pids.insert(tid, pid);
    }

    /// A process lives, whose threads may not be known.
    fn begin_process(&mut self, pid: i32) {
        self.pids.entry(pid).or_insert(pid);
    }

    /// A thread has ended.
    fn end(&mut self, tid: i32) {
        self.pids.remove(&tid);
    }

    /// Whether a thread lives.
    pub(crate) fn has(&self, tid: i32) -> bool {
        self.pids.contains_key(&tid)
    }

    /// Processes of which a thread lives.
    pub(crate) fn processes(&self) -> HashSet<i32> {
        self.pids.values().copied().collect()
    }

    /// Whether about half of what is known may be of no use.
    pub(crate) const fn is_due(&self) -> bool {
        self.changes >= MIN_CHANGES && self.changes >= self.kept
    }

    /// Begins anew with so many things known.
    pub(crate) const fn forgot(&mut self, kept: usize) {
        self.changes = 0;
        self.kept = kept;
    }
}

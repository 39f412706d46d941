//! Thread names over time.

use foldhash::HashMap;

use super::{CommSpan, NameId, ProcessNumber};

/// The names of all threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Of each thread, what it was called, in the order of time.
    by_tid: HashMap<i32, Vec<Named>>,
}

/// A name from one time on.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// ns.
    time: u64,
    /// [`NO_NAME`] if it is not known.
    name: NameId,
    /// The process whose main thread the thread is.
    process: ProcessNumber,
}

/// Stands for no name: there are fewer names.
const NO_NAME: NameId = NameId(u32::MAX);

impl Named {
    fn name(&self) -> Option<NameId> {
        (self.name != NO_NAME).then_some(self.name)
    }
}

impl Threads {
    /// A thread is called `name` from `time` on, which no earlier call's exceeds; `None`: no name is known.
    pub(super) fn set(&mut self, tid: i32, time: u64, name: Option<NameId>) {
        let spans = self.by_tid.entry(tid).or_default();
        let process = spans
            .last()
            .map_or(ProcessNumber::UNKNOWN, |span| span.process);
        let name = name.unwrap_or(NO_NAME);
        spans.push(Named {
            time,
            name,
            process,
        });
    }

    /// As [`set`](Self::set), for the main thread of a process that begins.
    pub(super) fn begin(
        &mut self,
        tid: i32,
        time: u64,
        name: Option<NameId>,
        process: ProcessNumber,
    ) {
        let name = name.unwrap_or(NO_NAME);
        let spans = self.by_tid.entry(tid).or_default();
        spans.push(Named {
            time,
            name,
            process,
        });
    }

    /// Forgets the names that threads had no longer at a time, and the threads that do not live any more.
    pub(super) fn forget_before(&mut self, time: u64, lives: impl Fn(i32) -> bool) {
        self.by_tid.retain(|&tid, spans| {
            let begun = spans.partition_point(|span| span.time <= time);
            spans.drain(..begun.saturating_sub(1));
            lives(tid) || spans.last().is_some_and(|span| span.time > time)
        });
    }

    /// Names that are known of threads.
    pub(super) fn len(&self) -> usize {
        self.by_tid.values().map(Vec::len).sum()
    }

    /// All names.
    pub(super) fn names_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        let spans = self.by_tid.values_mut().flatten();
        spans
            .map(|span| &mut span.name)
            .filter(|name| **name != NO_NAME)
    }

    /// What a thread was last called.
    pub(super) fn newest(&self, tid: i32) -> Option<NameId> {
        self.by_tid.get(&tid)?.last()?.name()
    }

    /// What a thread is called at a time, and from when to when it is.
    pub(super) fn at(&self, tid: i32, time: u64) -> CommSpan {
        let spans = self.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
        let begun = spans.partition_point(|span| span.time <= time);
        let current = begun.checked_sub(1).and_then(|at| spans.get(at));
        CommSpan {
            name: current.and_then(Named::name),
            process: current.map_or(ProcessNumber::UNKNOWN, |span| span.process),
            from: current.map_or(0, |span| span.time),
            until: spans.get(begun).map_or(u64::MAX, |span| span.time),
        }
    }
}

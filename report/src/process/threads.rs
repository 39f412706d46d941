//! Thread names over time.

use foldhash::HashMap;

use super::{CommSpan, NameId};

/// The names of all threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Of each thread, from when on which name, in the order of time.
    by_tid: HashMap<i32, Vec<(u64, Option<NameId>)>>,
}

impl Threads {
    /// A thread is called `name` from `time` on, which no earlier call's exceeds; `None`: no name is known.
    pub(super) fn set(&mut self, tid: i32, time: u64, name: Option<NameId>) {
        self.by_tid.entry(tid).or_default().push((time, name));
    }

    /// Forgets the names that threads had no longer at a time, and the threads that do not live any more.
    pub(super) fn forget_before(&mut self, time: u64, lives: impl Fn(i32) -> bool) {
        self.by_tid.retain(|&tid, spans| {
            let begun = spans.partition_point(|span| span.0 <= time);
            spans.drain(..begun.saturating_sub(1));
            lives(tid) || spans.last().is_some_and(|span| span.0 > time)
        });
    }

    /// Names that are known of threads.
    pub(super) fn len(&self) -> usize {
        self.by_tid.values().map(Vec::len).sum()
    }

    /// All names.
    pub(super) fn names_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        let spans = self.by_tid.values_mut().flatten();
        spans.filter_map(|span| span.1.as_mut())
    }

    /// What a thread was last called.
    pub(super) fn newest(&self, tid: i32) -> Option<NameId> {
        self.by_tid.get(&tid)?.last()?.1
    }

    /// What a thread is called at a time, and from when to when it is.
    pub(super) fn at(&self, tid: i32, time: u64) -> CommSpan {
        let spans = self.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
        let begun = spans.partition_point(|span| span.0 <= time);
        let current = begun.checked_sub(1).and_then(|at| spans.get(at));
        CommSpan {
            name: current.and_then(|span| span.1),
            from: current.map_or(0, |span| span.0),
            until: spans.get(begun).map_or(u64::MAX, |span| span.0),
        }
    }
}

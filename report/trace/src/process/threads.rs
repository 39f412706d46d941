//! Thread names over time.

use foldhash::{HashMap, HashSet};

use crate::process::comm::{CommSpan, ProcessNumber};
use crate::process::index::{Index, Numbered};
use crate::process::interner::StringId;
use crate::process::log::{Naming, Renamed};
use crate::process::names::NameId;
use crate::process::unaligned::PackedU64;

/// The names of all threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// What is known of a whole trace: by thread, of each what it was called in the order of time. A trace may have millions of
    /// processes.
    settled: Vec<Named>,
    index: Index,
    /// The names of each thread of a stream, in the order of time.
    by_tid: HashMap<i32, Vec<Named>>,
}

/// A name from one time on.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// ns.
    time: PackedU64,
    tid: i32,
    /// [`NO_NAME`] if it is not known.
    name: NameId,
    /// The process whose main thread the thread is.
    process: ProcessNumber,
}

/// What a thread is called for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadComm {
    pub tid: i32,
    pub comm: CommSpan,
}

/// Stands for no name: there are fewer names.
const NO_NAME: NameId = NameId(u32::MAX);

/// Stands for the process of the thread's entry before.
const SAME_PROCESS: ProcessNumber = ProcessNumber(u32::MAX);

impl Named {
    fn name(&self) -> Option<NameId> {
        (self.name != NO_NAME).then_some(self.name)
    }

    fn time(&self) -> u64 {
        self.time.into()
    }
}

impl Numbered for Named {
    fn number(&self) -> i32 {
        self.tid
    }
}

impl Threads {
    /// The threads of a whole trace. `begin` gives the number of each process in turn.
    pub(crate) fn settle(
        mut namings: Vec<Naming>,
        mut name: impl FnMut(StringId) -> NameId,
        mut begin: impl FnMut() -> ProcessNumber,
    ) -> Self {
        // Stable: of changes at the same time, in particular at 0, the file's order decides.
        namings.sort_by_key(|naming| naming.time);
        let parents = namings.iter().filter_map(|naming| match naming.change {
            Renamed::Name(_) => None,
            Renamed::AsThread(tid) | Renamed::AsParent(tid) => Some(tid),
        });
        let parents: HashSet<i32> = parents.collect();
        // What those are called: most threads have no children.
        let mut newest: HashMap<i32, NameId> = HashMap::default();
        let named = namings.into_iter().map(|naming| {
            let inherited = |tid: i32| newest.get(&tid).copied().unwrap_or(NO_NAME);
            let (name, process) = match naming.change {
                Renamed::Name(string) => (name(string), SAME_PROCESS),
                Renamed::AsThread(parent) => (inherited(parent), SAME_PROCESS),
                Renamed::AsParent(parent) => (inherited(parent), begin()),
            };
            if parents.contains(&naming.tid) {
                newest.insert(naming.tid, name);
            }
            Named {
                time: naming.time,
                tid: naming.tid,
                name,
                process,
            }
        });
        // In the memory of the namings.
        let mut settled: Vec<Named> = named.collect();
        settled.sort_by_key(|named| named.tid);
        let mut last = (None, ProcessNumber::UNKNOWN);
        for named in &mut settled {
            if last.0 != Some(named.tid) {
                last = (Some(named.tid), ProcessNumber::UNKNOWN);
            }
            if named.process == SAME_PROCESS {
                named.process = last.1;
            }
            last.1 = named.process;
        }
        settled.dedup_by_key(|named| (named.tid, named.name, named.process));
        settled.shrink_to_fit();
        Self {
            index: Index::new(&settled),
            settled,
            by_tid: HashMap::default(),
        }
    }

    /// What the threads of a whole trace were called, each in the order of time.
    pub(crate) fn settled(&self) -> impl Iterator<Item = ThreadComm> {
        self.settled.iter().enumerate().map(|(at, named)| {
            let next = self.settled.get(at + 1);
            let next = next.filter(|next| next.tid == named.tid);
            ThreadComm {
                tid: named.tid,
                comm: CommSpan {
                    name: named.name(),
                    process: named.process,
                    from: named.time(),
                    until: next.map_or(u64::MAX, Named::time),
                },
            }
        })
    }

    /// Sets the name of a thread from `time` on; `None`: no name is known. Calls for a thread must be in time order.
    pub(crate) fn set(&mut self, tid: i32, time: u64, name: Option<NameId>) {
        let last = self.by_tid.get(&tid).and_then(|spans| spans.last());
        let process = last.map_or(ProcessNumber::UNKNOWN, |span| span.process);
        self.begin(tid, time, name, process);
    }

    /// As [`set`](Self::set), for the main thread of a process that begins.
    pub(crate) fn begin(
        &mut self,
        tid: i32,
        time: u64,
        name: Option<NameId>,
        process: ProcessNumber,
    ) {
        let spans = self.by_tid.entry(tid).or_default();
        spans.push(Named {
            time: time.into(),
            tid,
            name: name.unwrap_or(NO_NAME),
            process,
        });
    }

    /// Forgets the names that threads of a stream had no longer at a time, and the threads that do not live any more.
    pub(crate) fn forget_before(&mut self, time: u64, lives: impl Fn(i32) -> bool) {
        self.by_tid.retain(|&tid, spans| {
            let begun = spans.partition_point(|span| span.time() <= time);
            spans.drain(..begun.saturating_sub(1));
            lives(tid) || spans.last().is_some_and(|span| span.time() > time)
        });
    }

    /// Names that are known of threads of a stream.
    pub(crate) fn len(&self) -> usize {
        self.by_tid.values().map(Vec::len).sum()
    }

    /// All names.
    pub(crate) fn names_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        let spans = self.by_tid.values_mut().flatten();
        spans
            .chain(&mut self.settled)
            .map(|span| &mut span.name)
            .filter(|name| **name != NO_NAME)
    }

    fn spans(&self, tid: i32) -> &[Named] {
        match self.by_tid.get(&tid) {
            Some(spans) => spans,
            None => {
                let places = self.index.range(&self.settled, tid);
                self.settled.get(places).unwrap_or_default()
            }
        }
    }

    /// What a thread was last called.
    pub(crate) fn newest(&self, tid: i32) -> Option<NameId> {
        self.spans(tid).last()?.name()
    }

    /// What a thread is called at a time, and from when to when it is.
    pub(crate) fn at(&self, tid: i32, time: u64) -> CommSpan {
        let spans = self.spans(tid);
        let begun = spans.partition_point(|span| span.time() <= time);
        let current = begun.checked_sub(1).and_then(|at| spans.get(at));
        CommSpan {
            name: current.and_then(Named::name),
            process: current.map_or(ProcessNumber::UNKNOWN, |span| span.process),
            from: current.map_or(0, Named::time),
            until: spans.get(begun).map_or(u64::MAX, Named::time),
        }
    }
}

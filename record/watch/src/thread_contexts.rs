//! Finds where the threads of recorded processes have their thread contexts ([`ThreadContext`](usdtrec_format::ThreadContext)), for the
//! programs that read these.
//!
//! A thread looks at each process that maps code: first those that run when the recording begins, which the start waits for, then as mapping
//! records come. The loader maps a library before it writes where its variables are; so the thread looks again, at longer and longer intervals.
//! Hits before it has found the variable have the reason that it is not known.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::engine::VariableLocations;
use usdtrec_format::perf::{ProcessChange, ProcessChangeKind};

use crate::batch::Batch;
use crate::limits::{MAX_CONTEXT_CHANGES, MAX_UNFINISHED};
use crate::stage::Stage;
use crate::variable_finder::{Finder, VariableSearch};

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "thread-contexts";
/// How long the start waits for the processes that run.
const START_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of passes whose changes wait for the thread.
const WAITING: usize = 4;
/// The thread pauses as long as it worked, so that it takes half of a CPU at most, but not longer than this.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The first interval at which it is, and the number of times; each interval is one and a half times as long as the one before.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
const MAX_TRIES: u32 = 24;

/// Says in which processes the variable is looked for.
#[derive(Debug)]
pub struct ThreadContexts {
    /// Since the last pass.
    changes: HashSet<Change>,
    thread: Option<FindingThread>,
    /// Whether the thread got any.
    has_begun: bool,
}

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    /// It mapped a file, or executes a program.
    Mapped(i32),
    /// It was started by another process.
    Forked { parent: i32, child: i32 },
}

#[derive(Debug)]
struct FindingThread {
    changes: SyncSender<HashSet<Change>>,
    /// A message when the first changes were looked at.
    done: Receiver<()>,
}

impl ThreadContexts {
    /// Knows no process yet.
    pub fn new(locations: VariableLocations) -> Self {
        Self {
            changes: HashSet::new(),
            thread: FindingThread::start(locations),
            has_begun: false,
        }
    }

    /// Waits until the processes that run when the recording begins were looked at. Probes are not enabled yet.
    pub fn wait_for_running(&self) {
        if let (Some(thread), true) = (&self.thread, self.has_begun) {
            // What was not looked at in time is not known yet.
            let _ = thread.done.recv_timeout(START_LIMIT);
        }
    }
}

impl Change {
    /// `None` if the variable is where it was.
    fn of_process(change: &ProcessChange<'_>) -> Option<Self> {
        let pid = change.pid;
        match change.kind {
            ProcessChangeKind::Mapped(_) => {
                let path = change.mapped()?.path;
                let is_file = path.starts_with(b"/") && !path.starts_with(b"//");
                is_file.then_some(Self::Mapped(pid))
            }
            ProcessChangeKind::Named { executes: true, .. } => Some(Self::Mapped(pid)),
            ProcessChangeKind::ProcessBegan { parent_pid, .. } => Some(Self::Forked {
                parent: parent_pid,
                child: pid,
            }),
            _ => None,
        }
    }
}

impl Stage for ThreadContexts {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for change in batch.changes().iter().filter_map(Change::of_process) {
            if self.changes.len() < MAX_CONTEXT_CHANGES {
                self.changes.insert(change);
            }
        }
        batch
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        let thread = self.thread.as_ref()?;
        if self.changes.is_empty() {
            return None;
        }
        let changes = std::mem::take(&mut self.changes);
        match thread.changes.try_send(changes) {
            Ok(()) => self.has_begun = true,
            // The thread is busy.
            Err(TrySendError::Full(changes)) => self.changes = changes,
            Err(TrySendError::Disconnected(_)) => self.thread = None,
        }
        None
    }
}

impl FindingThread {
    /// Starts the thread; `None` if that is impossible. It ends with the recording.
    fn start(locations: VariableLocations) -> Option<Self> {
        let (changes, changed) = sync_channel(WAITING);
        let (finished, done) = sync_channel(1);
        let run = move || Search::new(locations).run(&changed, &finished);
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(run);
        thread.ok().map(|_| Self { changes, done })
    }
}

/// The state of the thread.
struct Search {
    locations: VariableLocations,
    finder: Finder,
    /// Processes in which it is looked again.
    unfinished: HashMap<i32, Again>,
}

/// When a process is looked at again.
#[derive(Clone, Copy)]
struct Again {
    due: Instant,
    interval: Duration,
    tries: u32,
}

impl Again {
    fn first() -> Self {
        Self {
            due: Instant::now() + FIRST_INTERVAL,
            interval: FIRST_INTERVAL,
            tries: 0,
        }
    }

    /// `None` if it was often enough.
    fn next(self) -> Option<Self> {
        let interval = self.interval * 3 / 2;
        (self.tries < MAX_TRIES).then(|| Self {
            due: Instant::now() + interval,
            interval,
            tries: self.tries + 1,
        })
    }
}

impl Search {
    fn new(locations: VariableLocations) -> Self {
        Self {
            locations,
            finder: Finder::default(),
            unfinished: HashMap::new(),
        }
    }

    fn run(mut self, changed: &Receiver<HashSet<Change>>, finished: &SyncSender<()>) {
        loop {
            let next = self.unfinished.values().map(|again| again.due).min();
            let changes = match next {
                None => changed.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => {
                    let wait = due.saturating_duration_since(Instant::now());
                    changed.recv_timeout(wait)
                }
            };
            let begun = Instant::now();
            match changes {
                Ok(changes) => {
                    self.take(&changes);
                    // Only the first one is waited for.
                    let _ = finished.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look_again();
            thread::sleep(begun.elapsed().min(MAX_PAUSE));
        }
    }

    fn take(&mut self, changes: &HashSet<Change>) {
        let is_new = |pid: &i32| {
            self.unfinished.contains_key(pid) || changes.contains(&Change::Mapped(*pid))
        };
        let looked: HashSet<i32> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Mapped(pid) => Some(*pid),
                // A child has its parent's location, if that was known.
                Change::Forked { parent, child } => is_new(parent).then_some(*child),
            })
            .collect();
        for pid in looked {
            self.look(pid, Some(Again::first()));
        }
    }

    fn look_again(&mut self) {
        let now = Instant::now();
        let due = self.unfinished.iter().filter(|(_, again)| again.due <= now);
        let due: Vec<(i32, Again)> = due.map(|(pid, again)| (*pid, *again)).collect();
        for (pid, again) in due {
            self.look(pid, again.next());
        }
    }

    /// Looks for the variable of a process; `again` is when to look again if it is not there yet.
    fn look(&mut self, pid: i32, again: Option<Again>) {
        let found = self.finder.find(pid);
        self.unfinished.remove(&pid);
        match found {
            VariableSearch::Nothing => {}
            VariableSearch::NotYet => {
                let has_room = self.unfinished.len() < MAX_UNFINISHED;
                self.unfinished
                    .extend(again.filter(|_| has_room).map(|again| (pid, again)));
            }
            VariableSearch::Variable(found) => {
                if self.locations.set(pid, found.location).is_err() || !found.is_mapped(pid) {
                    // It executed another program meanwhile.
                    self.locations.remove(pid);
                }
            }
        }
    }
}

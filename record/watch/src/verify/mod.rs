//! Whether the attached probes work in the recorded processes.
//!
//! A link or an event that the kernel accepted may do nothing: it inserts nothing in writable mappings, refuses some instructions without a
//! word, raises the semaphore in the wrong place, and a program can drop its copy of the page. So this is the one place that sees which
//! processes map the files with probes, by the process records that the recorder drains anyway, looks into each of them (`look`), and
//! compares what is there with what must be there (`expected`): the bytes of each site, its semaphore, the file, and its code. It compares states
//! and knows no causes. What is found twice is a shortfall ([`Shortfalls`]).
//!
//! All reading is done by a thread (`checker`, where its cost is bounded); the loop of the recording only filters records.
//!
//! Comparing states finds causes that nobody has thought of. A finding counts when a second look agrees, because a
//! process may be between two programs, and when its mappings did not change during the look. All findings of the
//! recorder go through one handle (`shortfalls.rs`) into the trace.

mod checker;
mod copied;
mod expected;
mod fault_words;
mod look;
mod planted;
mod process;
mod running;
mod trapped;
mod watched;

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use usdtrec_attach::engine::HeldProcesses;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::perf::{Mmap, ProcessChange, ProcessChangeKind};

use self::checker::{Change, Checker, LAST_TIME};
pub use self::expected::ExpectedFiles;
use self::expected::MappedExpected;
pub use self::process::{ProcessMemory, address_of};
pub use self::running::{RunningSites, SiteNote};
pub use self::trapped::TRAPPED;
use crate::batch::Batch;
use crate::semaphores::copies::Copies;
use crate::shortfalls::Shortfalls;
use crate::stage::Stage;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "verify";
/// How long the end of a recording waits for an answer, beyond the time that the thread may take.
const MAX_ANSWER_DELAY: Duration = Duration::from_secs(1);

/// Sees what processes map, and has it verified.
#[derive(Debug)]
pub struct Verifier {
    files: Arc<ExpectedFiles>,
    /// The indexes of those whose probes are not detached for good.
    attached: Vec<usize>,
    /// Whether children of recorded processes are recorded.
    follows: bool,
    /// Processes that map a file with probes, or may.
    mapping: HashSet<i32>,
    /// `None` if there is no thread.
    changes: Option<Sender<Change>>,
}

/// What is verified, and where.
#[derive(Debug)]
pub struct Verified<'a> {
    /// Whose hits are recorded.
    pub target: &'a Target,
    /// The attached probes.
    pub probes: &'a [Arc<PlannedProbe>],
    /// Takes what is found.
    pub shortfalls: Shortfalls,
    /// Whether children of recorded processes are recorded.
    pub inherit: bool,
    /// Whether children have events only because they inherit them.
    pub inherits_events: bool,
    /// The processes that the kernel holds.
    pub held: Option<Arc<HeldProcesses>>,
    /// Whether the recorder can write into processes to the end.
    pub keeps_capabilities: bool,
}

impl Verifier {
    /// Starts the thread.
    pub fn start(verified: Verified<'_>) -> Self {
        let target = verified.target;
        let files = Arc::new(ExpectedFiles::of_probes(verified.probes));
        let is_named = *target != Target::All;
        let mut checker = Checker::new(Arc::clone(&files), verified.shortfalls, is_named);
        checker.inherits = verified.inherits_events;
        checker.held = verified.held;
        let follows = verified.inherit && !matches!(target, Target::Threads(_));
        // Who has dropped its capabilities could not lower them again; nor those of children that it does not see.
        checker.copied.copies = (follows && verified.keeps_capabilities).then(Copies::default);
        let (changes, taken) = channel();
        let thread = thread::Builder::new().name(NAME.to_owned());
        let thread = thread.spawn(move || checker.run(&taken));
        Self {
            attached: (0..files.0.len()).collect(),
            files,
            follows,
            mapping: HashSet::new(),
            changes: thread.is_ok().then_some(changes),
        }
    }

    /// Takes files of probes that were added, and processes that are known to map them: the records of that have passed.
    pub fn add(&mut self, files: ExpectedFiles, pids: &[i32]) {
        let before = self.files.0.len();
        self.files = Arc::new(self.files.with(files));
        self.attached.extend(before..self.files.0.len());
        self.send(Change::Added(Arc::clone(&self.files)));
        for file in before..self.files.0.len() {
            for &pid in pids {
                let mapped = MappedExpected {
                    file,
                    has_build_id: None,
                    is_it: true,
                    base: None,
                };
                self.map(pid, mapped);
            }
        }
    }

    /// The probes of a file are detached for good.
    pub fn detach(&mut self, file: &ObjectFile) {
        self.attached.retain(|at| {
            let known = self.files.0.get(*at);
            let detached = known.filter(|known| *known.file == *file);
            detached.inspect(|known| known.detach()).is_none()
        });
    }

    /// Probes are going to be detached for a time: their sites are not looked at any more.
    pub fn pause(&self, events: Arc<[String]>) {
        self.send(Change::Paused { events });
    }

    /// Takes processes with first hits.
    pub fn take_hits(&mut self, pids: impl Iterator<Item = i32>) {
        for pid in pids {
            self.send(Change::Hit { pid });
        }
    }

    /// Looks at all processes that were not looked at. From then on some may not be readable. The channel gets a message when that is done.
    pub fn look_first(&self) -> Receiver<()> {
        let (done, looked) = channel();
        self.send(Change::FirstLook(done));
        looked
    }

    /// Looks at all processes once more. The probes must still be attached.
    pub fn look_last(&mut self) {
        self.ask(Change::LastLook);
    }

    /// Says how a process has ended, if that was by SIGTRAP. A shell that runs it ends with a status instead.
    pub fn note_end(&self, pid: u32, status: ExitStatus) {
        const OF_SHELL: i32 = 128 + libc::SIGTRAP;
        let is_shell = status.code() == Some(OF_SHELL);
        if is_shell || status.signal() == Some(libc::SIGTRAP) {
            let pid = i32::try_from(pid).ok().filter(|_| !is_shell);
            self.send(Change::Trapped { pid });
        }
    }

    /// The files with attached probes.
    pub const fn files(&self) -> &Arc<ExpectedFiles> {
        &self.files
    }

    /// The processes that map them, or may.
    pub fn processes(&self) -> Vec<i32> {
        self.mapping.iter().copied().collect()
    }

    fn note(&mut self, change: &ProcessChange<'_>) {
        let pid = change.pid;
        match change.kind {
            ProcessChangeKind::Mapped(_) => {
                // One without code that is made up is of a program that moved its code elsewhere.
                let has_code = |map: &&Mmap<'_>| map.is_executable() || change.time == 0;
                let mapped = change.mapped().filter(has_code);
                if let Some(mapped) = mapped.and_then(|map| self.files.find(&self.attached, map)) {
                    self.map(pid, mapped);
                }
            }
            ProcessChangeKind::ProcessBegan {
                parent_pid: parent,
                ran_already: false,
                ..
            } if self.follows && self.mapping.contains(&parent) => {
                self.mapping.insert(pid);
                self.send(Change::Forked { pid, parent });
            }
            // It may map one again.
            ProcessChangeKind::Named { executes: true, .. } if self.mapping.remove(&pid) => {
                self.send(Change::Executed { pid });
            }
            ProcessChangeKind::ThreadEnded { is_last: true } if self.mapping.remove(&pid) => {
                self.send(Change::Ended { pid });
            }
            _ => {}
        }
    }

    fn map(&mut self, pid: i32, mapped: MappedExpected) {
        self.mapping.insert(pid);
        self.send(Change::Mapped { pid, mapped });
    }

    fn send(&self, change: Change) {
        if let Some(changes) = &self.changes {
            // The thread ends with the recording.
            let _ = changes.send(change);
        }
    }

    /// Asks the thread for something, and waits until it is done.
    fn ask(&self, question: impl FnOnce(Sender<()>) -> Change) {
        let (done, answer) = channel();
        self.send(question(done));
        let _ = answer.recv_timeout(LAST_TIME + MAX_ANSWER_DELAY);
    }
}

impl Stage for Verifier {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for change in batch.changes() {
            self.note(change);
        }
        batch
    }

    /// Has the rest reported.
    fn end_recording(&mut self) -> Option<Batch<'_>> {
        self.ask(Change::Finish);
        None
    }
}

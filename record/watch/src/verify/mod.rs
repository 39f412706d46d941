//! Whether the attached probes work in the recorded processes.
//!
//! A link or an event that the kernel accepted may do nothing: it plants nothing in writable mappings, refuses some instructions without a
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
use usdtrec_format::perf::{Comm, Mmap, RecordType, SampleType, Task};

use self::checker::{Change, Checker, LAST_TIME};
pub use self::expected::ExpectedFiles;
use self::expected::MappedExpected;
pub use self::look::address_of;
pub use self::process::ProcessMemory;
pub use self::running::{SiteNote, notes_of_sites};
pub use self::trapped::TRAPPED;
use crate::batch::{Batch, Record};
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
    /// `sample_type` of the process records' sample ids.
    id_type: SampleType,
    files: Arc<ExpectedFiles>,
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
    pub probes: &'a [PlannedProbe],
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
    /// `sample_type` of the process records' sample ids.
    pub id_type: SampleType,
}

/// Something that a record says, with its time.
struct Seen {
    time: u64,
    change: SeenChange,
}

enum SeenChange {
    Change(Change),
    Forked { pid: i32, parent: i32 },
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
            id_type: verified.id_type,
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
        self.send(Change::Added(Arc::clone(&self.files)));
        for file in before..self.files.0.len() {
            for &pid in pids {
                let mapped = MappedExpected {
                    file,
                    has_build_id: None,
                    is_it: true,
                    base: None,
                };
                self.note(SeenChange::Change(Change::Mapped { pid, mapped }));
            }
        }
    }

    /// The probes of a file are detached for good.
    pub fn detach(&self, file: &ObjectFile) {
        let files = self.files.0.iter();
        files
            .filter(|known| *known.file == *file)
            .for_each(|known| known.detach());
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

    fn see(&self, record: Record<'_>) -> Option<Seen> {
        let (id_type, record) = (self.id_type, &record.raw());
        let (time, change) = match record.kind {
            RecordType::MMAP2 => {
                let map = Mmap::parse(record, id_type)?;
                // One without code that is made up is of a program that moved its code elsewhere.
                let has_code = map.is_executable() || map.id.time == 0;
                if map.cpu_mode != Mmap::USER || !has_code {
                    return None;
                }
                let (pid, mapped) = (map.pid, self.files.find(&map)?);
                let change = Change::Mapped { pid, mapped };
                (map.id.time, SeenChange::Change(change))
            }
            RecordType::COMM => {
                let comm = Comm::parse(record, id_type).filter(|comm| comm.exec)?;
                let change = Change::Executed { pid: comm.pid };
                (comm.id.time, SeenChange::Change(change))
            }
            RecordType::FORK => {
                let task = Task::parse_fork(record, id_type)?;
                let (pid, parent) = (task.pid, task.parent_pid);
                let is_process = pid != parent && !task.already_ran && self.follows;
                is_process.then_some((task.time, SeenChange::Forked { pid, parent }))?
            }
            RecordType::EXIT => {
                let task = Task::parse_exit(record, id_type)?;
                let change = Change::Ended { pid: task.pid };
                (task.pid == task.tid).then_some((task.time, SeenChange::Change(change)))?
            }
            _ => return None,
        };
        Some(Seen { time, change })
    }

    fn note(&mut self, change: SeenChange) {
        let change = match change {
            SeenChange::Forked { pid, parent } => {
                if !self.mapping.contains(&parent) {
                    return;
                }
                self.mapping.insert(pid);
                Change::Forked { pid, parent }
            }
            SeenChange::Change(change @ Change::Mapped { pid, .. }) => {
                self.mapping.insert(pid);
                change
            }
            SeenChange::Change(change @ (Change::Executed { pid } | Change::Ended { pid })) => {
                if !self.mapping.remove(&pid) {
                    return;
                }
                change
            }
            SeenChange::Change(change) => change,
        };
        self.send(change);
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
    /// The records of one batch are brought into the order of time.
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        // Samples have rings of their own.
        let is_sample = |kind| matches!(kind, RecordType::SAMPLE | RecordType::LOST);
        let first = batch.records().next();
        if first.is_none_or(|first| is_sample(first.kind())) {
            return batch;
        }
        let seen = batch.records().filter_map(|record| self.see(record));
        let mut seen: Vec<Seen> = seen.collect();
        seen.sort_by_key(|seen| seen.time);
        for Seen { change, .. } in seen {
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

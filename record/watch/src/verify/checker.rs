//! The thread that looks into processes.
//!
//! **Cost.** After a first look, and after a look that is repeated because of what the one before it found, the thread pauses nine times as
//! long as it took; after each other one 99 times: at most a tenth and a hundredth of one CPU. A process is looked at again after a second at the
//! earliest. When the recording ends, all are looked at once more, for at most [`LAST_TIME`].

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::engine::HeldProcesses;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::named_process::NamedProcess;
use usdtrec_kernel::host::process::is_gone;

use super::copied::{CopiedFiles, has_semaphores};
use super::expected::{ExpectedFiles, MappedExpected};
use super::look::{Look, Looking, SiteFault};
use super::trapped::TrappedProcesses;
use super::watched::{FileBase, Watched};
use crate::limits::{MAX_BASES, MAX_OPEN_PROCESSES, MAX_WATCHED};
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// Ratio of the pause after a first or a repeated look to its duration.
const FIRST_PAUSE: u32 = 9;
/// The same for all other looks.
const PAUSE: u32 = 99;
/// When what was found is looked at a second time. It is reported if it is still so.
const AGAIN: Duration = Duration::from_millis(50);
/// How often each process is looked at, if the pauses allow it.
const PERIOD: Duration = Duration::from_secs(1);
/// After which time the loader of a program is done.
const SETTLED: Duration = Duration::from_secs(1);
/// Maximum time of the first looks, if there are none later.
const FIRST_TIME: Duration = Duration::from_secs(1);
/// Maximum time of the last looks.
pub(super) const LAST_TIME: Duration = Duration::from_millis(100);
/// Interval between the last two looks at a process.
const LAST_AGAIN: Duration = Duration::from_millis(5);
/// Time within which two processes of one number are the same: records of its mappings may come in several passes.
const REUSE: Duration = Duration::from_secs(5);
/// Time without a change of what is due.
const IDLE: Duration = Duration::from_secs(3600);

/// What happens to processes.
#[derive(Debug)]
pub(super) enum Change {
    /// Probes were added: the files with probes, those that were known before at the beginning.
    Added(Arc<ExpectedFiles>),
    /// A process maps a file with probes.
    Mapped { pid: i32, mapped: MappedExpected },
    /// A process has the mappings of its parent.
    Forked { pid: i32, parent: i32 },
    /// A process begins another program.
    Executed { pid: i32 },
    /// A process has ended.
    Ended { pid: i32 },
    /// A process was killed by SIGTRAP; `None` if only its shell says so.
    Trapped { pid: Option<i32> },
    /// A process has a hit.
    Hit { pid: i32 },
    /// The recorder loses its capabilities: all are to be looked at that were not. Answered when that is done.
    FirstLook(Sender<()>),
    /// Probes with these events are detached for a time.
    Paused { events: Arc<[String]> },
    /// The recording ends: all are to be looked at a last time. Answered when that is done.
    LastLook(Sender<()>),
    /// No hits will come. Answered when everything is reported; the thread ends.
    Finish(Sender<()>),
}

/// The thread.
#[derive(Debug)]
pub(super) struct Checker {
    pub(super) files: Arc<ExpectedFiles>,
    pub(super) shortfalls: Shortfalls,
    /// Whether the recorded processes were named.
    pub(super) is_named: bool,
    /// Whether children of recorded processes inherit the perf events that attach their probes.
    pub(super) inherits: bool,
    /// The processes that are held until probes are attached to them.
    pub(super) held: Option<Arc<HeldProcesses>>,
    /// Events whose probes are attached only at times.
    paused: HashSet<String>,
    watched: HashMap<i32, Watched>,
    due: BTreeSet<(Instant, i32)>,
    not_before: Instant,
    /// When processes were last known to have a first hit.
    hit: HashMap<i32, Instant>,
    /// Processes that ended, without a hit so far.
    ended: HashMap<i32, Watched>,
    /// Processes without hits that were not checked, and why the last one could not be read.
    unchecked: u64,
    denied: Option<io::Error>,
    /// Whether the recorder has dropped the capabilities with which it could read all processes.
    is_powerless: bool,
    /// Whether the last looks were made: the recorder takes back what new processes would need.
    is_over: bool,
    /// Files that processes map more than once.
    pub(super) copied: CopiedFiles,
    trapped: TrappedProcesses,
}

impl Checker {
    pub(super) fn new(files: Arc<ExpectedFiles>, shortfalls: Shortfalls, is_named: bool) -> Self {
        Self {
            files,
            shortfalls,
            is_named,
            inherits: false,
            held: None,
            paused: HashSet::new(),
            watched: HashMap::new(),
            due: BTreeSet::new(),
            not_before: Instant::now(),
            hit: HashMap::new(),
            ended: HashMap::new(),
            unchecked: 0,
            denied: None,
            is_powerless: false,
            is_over: false,
            copied: CopiedFiles::default(),
            trapped: TrappedProcesses::default(),
        }
    }

    /// Takes changes and looks into processes, until the recording has ended.
    pub(super) fn run(mut self, changes: &Receiver<Change>) {
        loop {
            let due = self.due.first().map(|(at, _)| *at);
            let wait = due.map_or(IDLE, |due| {
                due.max(self.not_before)
                    .saturating_duration_since(Instant::now())
            });
            match changes.recv_timeout(wait) {
                Ok(Change::FirstLook(done)) => {
                    self.look_first();
                    let _ = done.send(());
                }
                Ok(Change::LastLook(done)) => {
                    self.look_last();
                    self.is_over = true;
                    let _ = done.send(());
                }
                Ok(Change::Finish(done)) => {
                    self.finish();
                    let _ = done.send(());
                    return;
                }
                Ok(change) => self.take(change),
                Err(RecvTimeoutError::Timeout) => self.look_at_next(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Added(files) => self.files = files,
            Change::Paused { events } => self.paused.extend(events.iter().cloned()),
            Change::Mapped { pid, mapped } => self.map(pid, mapped),
            Change::Forked { pid, parent } => {
                let is_sure = self.watched.get(&parent);
                let is_sure = is_sure.is_some_and(|parent| parent.is_sure);
                if let Some(watched) = self.watch(pid) {
                    watched.parent = Some(parent);
                    watched.is_sure = is_sure;
                }
            }
            Change::Executed { pid } => {
                // A child that only begins another program has what its parent has.
                let is_copy = |watched: &Watched| watched.parent.is_some() && !watched.is_read;
                match self.watched.get(&pid).is_some_and(is_copy) {
                    true => drop(self.forget(pid)),
                    false => self.end(pid),
                }
            }
            Change::Ended { pid } => {
                let ended = self.watched.get(&pid);
                let status = ended.and_then(|ended| ended.process.as_ref()?.status_now());
                if status.is_some_and(|status| status.signal() == Some(libc::SIGTRAP)) {
                    self.trapped
                        .report(Some(pid), &self.files, &self.shortfalls);
                }
                self.end(pid);
            }
            Change::Trapped { pid } => self.note_trapped(pid),
            Change::Hit { pid } => {
                if let Some(watched) = self.watched.get_mut(&pid) {
                    watched.has_hit = true;
                }
                self.ended.remove(&pid);
                if self.hit.len() >= MAX_WATCHED {
                    self.hit.clear();
                }
                self.hit.insert(pid, Instant::now());
            }
            Change::FirstLook(_) | Change::LastLook(_) | Change::Finish(_) => {}
        }
    }

    fn map(&mut self, pid: i32, mapped: MappedExpected) {
        let Some(watched) = self.watch(pid) else {
            return;
        };
        watched.is_sure |= mapped.is_it;
        let file = mapped.file;
        let is_new = mapped.base.filter(|_| mapped.is_it).is_some_and(|base| {
            watched.bases.len() < MAX_BASES && watched.bases.insert(FileBase { file, base })
        });
        if is_new {
            watched.is_settled = false;
        }
        self.note_build(pid, mapped);
        let is_copy = |watched: &Watched| is_new && watched.copies(file) > 1;
        let is_counted = (self.files.0.get(file)).is_some_and(|file| has_semaphores(file));
        // Its code may be hit at once. Any user may map files again and again, so the pause is kept; after it the process is due.
        let may_look = Instant::now() >= self.not_before;
        if may_look && is_counted && self.watched.get(&pid).is_some_and(is_copy) {
            self.due.retain(|(_, due)| *due != pid);
            self.look_and_pause(pid, FIRST_PAUSE);
        }
    }

    /// A process was killed by SIGTRAP; `None` if only its shell says so.
    fn note_trapped(&mut self, pid: Option<i32>) {
        let has_file = |pid: &i32| {
            self.watched.contains_key(pid)
                || self.ended.contains_key(pid)
                || self.hit.contains_key(pid)
        };
        let is_known = match pid {
            Some(pid) => has_file(&pid),
            None => self.trapped.is_empty() && !self.ended.is_empty(),
        };
        if is_known {
            let mut ended = self.ended.keys().copied();
            let only = ended.next().filter(|_| ended.next().is_none());
            let pid = pid.or(only);
            if let Some(pid) = pid {
                self.ended.remove(&pid);
            }
            self.trapped.report(pid, &self.files, &self.shortfalls);
        }
    }

    fn note_build(&mut self, pid: i32, mapped: MappedExpected) {
        let Some(watched) = self.watched.get_mut(&pid) else {
            return;
        };
        let files = match mapped.has_build_id {
            Some(true) => &mut watched.same_build,
            Some(false) => &mut watched.other_build,
            None => return,
        };
        if !files.contains(&mapped.file) {
            files.push(mapped.file);
        }
    }

    /// Looks at a process soon.
    fn watch(&mut self, pid: i32) -> Option<&mut Watched> {
        if self.is_over {
            return None;
        }
        if self.watched.len() >= MAX_WATCHED && !self.watched.contains_key(&pid) {
            self.unchecked += 1;
            return None;
        }
        let has_room = self.watched.len() < MAX_OPEN_PROCESSES;
        let watched = self.watched.entry(pid).or_insert_with(|| {
            let pid = u32::try_from(pid).ok().filter(|_| has_room);
            Watched::new(pid.map(NamedProcess::open))
        });
        self.due.remove(&(watched.next, pid));
        watched.next = watched.next.min(Instant::now());
        self.due.insert((watched.next, pid));
        Some(watched)
    }

    /// Watches a process no longer.
    fn forget(&mut self, pid: i32) -> Option<Watched> {
        let watched = self.watched.remove(&pid)?;
        self.due.remove(&(watched.next, pid));
        Some(watched)
    }

    /// A process has ended, or maps nothing that it mapped before.
    fn end(&mut self, pid: i32) {
        let Some(mut watched) = self.forget(pid) else {
            return;
        };
        watched.process = None;
        self.copied.forget(pid);
        if self.trapped.has(pid) {
            return;
        }
        let mapped: BTreeSet<usize> = watched.bases.iter().map(|at| at.file).collect();
        for number in mapped.into_iter().filter(|_| !watched.is_settled) {
            let copies = watched.copies(number);
            if let Some(file) = self.files.0.get(number) {
                CopiedFiles::report_unseen(pid, file, copies, &self.shortfalls);
            }
        }
        let last_hit = self.hit.get(&pid);
        let has_hit = watched.has_hit || last_hit.is_some_and(|at| at.elapsed() < REUSE);
        let is_known = has_hit || self.is_right(&watched) || !watched.is_sure;
        if is_known {
            return;
        }
        if self.ended.len() >= MAX_WATCHED {
            self.unchecked += 1;
        } else if let Some(earlier) = self.ended.insert(pid, watched)
            && earlier.since.elapsed() >= REUSE
        {
            self.report_ended(pid, earlier);
        }
    }

    /// Whether everything was as it must be in a process, or in the one of which it is a copy, when that was read.
    fn is_right(&self, watched: &Watched) -> bool {
        let is_right = |one: &Watched| one.is_read && one.suspected.is_empty();
        let parent = watched.parent.filter(|_| !watched.is_read);
        let parent = parent.and_then(|parent| self.watched.get(&parent));
        parent.map_or_else(
            || is_right(watched),
            |parent| {
                parent.since <= watched.since && is_right(parent) && parent.reported.is_empty()
            },
        )
    }

    fn look_at_next(&mut self) {
        let Some((_, pid)) = self.due.pop_first() else {
            return;
        };
        let is_first = self
            .watched
            .get(&pid)
            .is_some_and(|watched| !watched.is_read || !watched.suspected.is_empty());
        self.look_and_pause(pid, if is_first { FIRST_PAUSE } else { PAUSE });
    }

    /// Looks at a process that is not among the due ones. The next look is after `pause` times as long as this one takes.
    fn look_and_pause(&mut self, pid: i32, pause: u32) {
        let begun = Instant::now();
        self.look_at(pid);
        self.not_before = Instant::now() + begun.elapsed() * pause;
    }

    /// Looks at a process that is not among the due ones, and makes it due again.
    fn look_at(&mut self, pid: i32) {
        let Some(watched) = self.watched.get_mut(&pid) else {
            return;
        };
        let looking = Looking {
            pid,
            files: &self.files,
            is_settled: watched.since.elapsed() >= SETTLED,
            is_named: self.is_named,
            inherits: self.inherits,
            same_build: &watched.same_build,
            other_build: &watched.other_build,
        };
        let is_held = self.held.as_ref().is_some_and(|held| held.has(pid));
        let next = match if is_held {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            looking.look()
        } {
            Ok(Look {
                sites,
                mut faults,
                copied,
            }) => {
                watched.is_read = true;
                watched.is_sure |= sites > 0;
                watched.is_settled = true;
                faults.retain(|fault| !self.is_paused(fault));
                let (files, shortfalls) = (&self.files, &self.shortfalls);
                let is_raised = self.copied.raise(pid, &copied, files, shortfalls);
                faults.retain(|fault| !is_raised || !fault.is_of_copy());
                self.compare(pid, faults)
            }
            Err(error) if is_gone(&error) => return self.end(pid),
            // It changes, or is held.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => AGAIN,
            Err(error) => {
                self.denied = Some(error);
                PERIOD
            }
        };
        if let Some(watched) = self.watched.get_mut(&pid) {
            watched.next = Instant::now() + next;
            self.due.insert((watched.next, pid));
        }
    }

    /// Whether a fault is what a pause of the site's probe looks like.
    fn is_paused(&self, fault: &SiteFault) -> bool {
        let of_pauses = [ShortfallKind::NoBreakpoint, ShortfallKind::Semaphore];
        let file = self.files.0.get(fault.file);
        let site = file.and_then(|file| file.sites.get(fault.site));
        of_pauses.contains(&fault.fault.kind())
            && site.is_some_and(|site| self.paused.contains(&site.event))
    }

    /// Reports what was found twice. Returns when to look again.
    fn compare(&mut self, pid: i32, faults: Vec<SiteFault>) -> Duration {
        let Some(watched) = self.watched.get_mut(&pid) else {
            return PERIOD;
        };
        let certain = watched.confirmed(faults);
        let next = match watched.suspected.is_empty() {
            true => PERIOD,
            false => AGAIN,
        };
        watched.report(pid, &certain, &self.files, &self.shortfalls);
        next
    }

    /// Looks at the processes that were not read, as far as time allows.
    fn look_first(&mut self) {
        let begun = Instant::now();
        let unread = self.watched.iter().filter(|(_, watched)| !watched.is_read);
        for pid in unread.map(|(pid, _)| *pid).collect::<Vec<_>>() {
            if begun.elapsed() >= FIRST_TIME {
                break;
            }
            self.due.retain(|(_, due)| *due != pid);
            self.look_at(pid);
        }
        // Else there were not enough of them before, either.
        self.is_powerless = self.denied.is_none();
    }

    /// Looks at all processes, those with something to be confirmed first, as far as time allows.
    fn look_last(&mut self) {
        let deadline = Instant::now() + LAST_TIME;
        let mut pids: Vec<i32> = self.watched.keys().copied().collect();
        // The least recently looked at are due next.
        pids.sort_by_key(|pid| {
            let watched = &self.watched[pid];
            let is_quiet = !self.copied.has(*pid) && watched.suspected.is_empty();
            (is_quiet, watched.is_read, watched.next)
        });
        self.due.clear();
        for pid in pids {
            if Instant::now() >= deadline {
                break;
            }
            self.look_at(pid);
        }
        let suspects = self.watched.iter();
        let suspects = suspects.filter(|(_, watched)| !watched.suspected.is_empty());
        let suspects: Vec<i32> = suspects.map(|(pid, _)| *pid).collect();
        if !suspects.is_empty() {
            thread::sleep(LAST_AGAIN);
        }
        for pid in suspects {
            if Instant::now() >= deadline + LAST_AGAIN {
                break;
            }
            self.look_at(pid);
        }
        self.due.clear();
    }

    /// Reports what processes without hits were found to lack, and the number of those that were not checked.
    fn finish(&mut self) {
        self.copied.lower(&self.shortfalls);
        for (pid, ended) in std::mem::take(&mut self.ended) {
            self.report_ended(pid, ended);
        }
        let unknown = self.watched.values().filter(|watched| {
            let is_quiet = watched.is_sure && !watched.has_hit;
            is_quiet && !watched.is_read && !self.is_right(watched)
        });
        self.unchecked += unknown.count() as u64;
        if self.unchecked == 0 {
            return;
        }
        let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let is_denied = self.denied.as_ref().is_some_and(is_denied);
        self.shortfalls.add(FoundShortfall {
            kind: ShortfallKind::NotChecked,
            processes: self.unchecked,
            found: match &self.denied {
                Some(error) => {
                    format!("had no recorded hits, and could not be read: {error}")
                }
                None => "had no recorded hits, and could not be checked in time".to_owned(),
            },
            effect: "whether the probes worked there is not known".to_owned(),
            remedy: match is_denied {
                true if self.is_powerless => {
                    "record so that files are followed: the recorder then keeps its capabilities"
                }
                true => "record with CAP_SYS_PTRACE",
                false => "",
            }
            .to_owned(),
            ..FoundShortfall::default()
        });
    }

    /// Reports what is known of a process that has ended without a hit: what a single look found is likely so.
    fn report_ended(&mut self, pid: i32, mut ended: Watched) {
        if ended.suspected.is_empty() {
            self.unchecked += u64::from(!self.is_right(&ended));
            return;
        }
        let suspected = std::mem::take(&mut ended.suspected);
        ended.report(pid, &suspected, &self.files, &self.shortfalls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checker() -> Checker {
        let files = Arc::new(ExpectedFiles(Vec::new()));
        Checker::new(files, Shortfalls::default(), false)
    }

    fn mapped(pid: i32) -> Change {
        Change::Mapped {
            pid,
            mapped: MappedExpected {
                file: 0,
                has_build_id: None,
                is_it: true,
                base: None,
            },
        }
    }

    /// Numbers of processes cannot be negative: these have ended.
    #[test]
    fn a_process_that_cannot_be_read_is_counted_unless_it_has_a_hit() {
        let mut checker = checker();
        for pid in [-2, -3, -4, -5, -6] {
            checker.take(mapped(pid));
        }
        checker.take(Change::Forked {
            pid: -7,
            parent: -6,
        });
        checker.take(Change::Executed { pid: -7 });
        checker.take(Change::Hit { pid: -2 });
        checker.take(Change::Ended { pid: -3 });
        checker.take(Change::Ended { pid: -4 });
        checker.take(Change::Hit { pid: -4 });
        checker.look_at_next();
        checker.look_last();
        checker.finish();
        let all = checker.shortfalls.all();
        let [one] = &*all else { panic!("{all:?}") };
        assert_eq!(one.kind, ShortfallKind::NotChecked);
        assert_eq!(one.processes, 3);
    }

    /// Who maps a file again and again has the recorder look no more often.
    #[test]
    fn a_file_that_is_mapped_again_waits_for_the_end_of_the_pause() {
        let mut files = ExpectedFiles::of_site(&std::env::current_exe().unwrap(), 64);
        let file = files.0.first_mut().and_then(Arc::get_mut).unwrap();
        file.sites.first_mut().unwrap().ref_ctr = 8;
        let mut checker = Checker::new(Arc::new(files), Shortfalls::default(), false);
        let map = |base| Change::Mapped {
            pid: -2,
            mapped: MappedExpected {
                file: 0,
                has_build_id: None,
                is_it: true,
                base: Some(base),
            },
        };
        checker.not_before = Instant::now() + SETTLED;
        (1..4).for_each(|base| checker.take(map(base)));
        assert!(checker.due.iter().any(|(_, pid)| *pid == -2));
        checker.not_before = Instant::now();
        checker.take(map(4));
        // It has ended, which the look shows.
        assert!(!checker.watched.contains_key(&-2));
    }

    #[test]
    fn an_ended_copy_of_a_process_that_was_right_is_right() {
        let mut checker = checker();
        checker.take(mapped(-2));
        for pid in [-3, -4] {
            checker.take(Change::Forked { pid, parent: -2 });
        }
        checker.take(Change::Ended { pid: -3 });
        if let Some(parent) = checker.watched.get_mut(&-2) {
            parent.is_read = true;
        }
        checker.take(Change::Ended { pid: -4 });
        checker.finish();
        assert_eq!(*checker.shortfalls.all(), []);
    }

    #[test]
    fn without_processes_nothing_is_reported() {
        let mut checker = checker();
        checker.look_at_next();
        checker.look_last();
        checker.finish();
        assert_eq!(*checker.shortfalls.all(), []);
    }
}

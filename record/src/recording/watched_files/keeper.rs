//! The thread that detaches the probes of files that nobody executes, attaches them again when somebody does, and names readers.
//!
//! **When nobody executes a file** is known from three things: the time of its last mapping with the right to execute, a process that was seen to
//! execute it, and, when that does not any more, searches among all processes. Its probes are detached after two searches have found nobody, and
//! if these could read all processes and it was not mapped since the last one began: from then on the programs on mappings call. A process may be forked while one search
//! passes, but hardly while both do. Searches take at most a hundredth of a CPU.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_attach::engine::{FileCall, MAX_HOLD, WatchedFiles};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::counted;
use usdtrec_format::scaled::duration;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::kernel_version::tells_processes;
use usdtrec_kernel::host::limits::WorkTime;
use usdtrec_kernel::host::process::Process;
use usdtrec_kernel::trace_clock;
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};

use crate::recording::watched_files::file::{
    Found, Mapped, ProbedFile, ProbedFiles, mapped_by, search,
};

/// After what time without anybody who executes a file its probes are detached.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(10);
/// Interval of looking.
const STEP: Duration = Duration::from_millis(500);
/// For how long a mapping may be that of a loader when the recording ends.
const LAST_LOADER_TIME: Duration = Duration::from_millis(20);
/// Interval of looking for who executes files without probes or reads files with breakpoints, which the program did not see.
const SEARCH_TIME: Duration = Duration::from_secs(10);
/// Ratio of the pause after a search to its duration: a hundredth of a CPU.
const SEARCH_PAUSE: u32 = 99;
/// Number of searches that must find nobody.
const SEARCHES: u32 = 2;
/// The same, if some process could not be read in time at any of them: anybody can have a process that never can.
const LATE_SEARCHES: u32 = 6;

/// What changes in the files.
#[derive(Debug)]
pub(super) enum FilesChange {
    /// These have probes now.
    Added(Vec<ProbedFile>),
    /// The probes of this one are detached for good.
    Released(Arc<ObjectFile>),
}

/// The thread.
#[derive(Debug)]
pub(super) struct Keeper {
    /// What sees mappings; `None` if the kernel does not allow that.
    watched: Option<WatchedFiles>,
    shortfalls: Shortfalls,
    changes: Receiver<FilesChange>,
    woken: PipeReader,
    files: ProbedFiles,
    /// By the same places.
    uses: BTreeMap<usize, FileUse>,
    /// The place of the next file.
    next: usize,
    /// Places of files by their numbers.
    numbers: HashMap<u32, usize>,
    readers: Readers,
    /// When the last search ended, and when the next one may begin.
    searched: Option<Instant>,
    search_from: Instant,
    /// Number of mappings that the program had missed at that time.
    missed: u64,
}

/// Whether a file is executed.
#[derive(Debug)]
struct FileUse {
    /// When it was last known to be, ns of the trace's clock.
    used: u64,
    /// A process that did then.
    executing: Option<i32>,
    /// Number of searches that have found nobody since.
    searches: u32,
    /// Number of those that could not read all processes in time.
    late: u32,
    /// Whether its probes are detached.
    is_idle: bool,
}

impl FileUse {
    fn new(used: u64) -> Self {
        Self {
            used,
            executing: None,
            searches: 0,
            late: 0,
            is_idle: false,
        }
    }

    fn use_now(&mut self, executing: Option<i32>) {
        *self = Self {
            executing,
            is_idle: self.is_idle,
            ..Self::new(trace_clock::now())
        };
    }

    /// For how long nobody is known to have executed it.
    fn unused(&self) -> Duration {
        Duration::from_nanos(trace_clock::now().saturating_sub(self.used))
    }

    /// Whether enough searches have found nobody.
    const fn is_unused(&self) -> bool {
        self.searches - self.late >= SEARCHES || self.searches >= LATE_SEARCHES
    }

    /// Whether somebody is to be looked for: the last search is that after which its probes are detached.
    fn is_search_due(&self) -> bool {
        self.unused() >= IDLE_TIME * (self.searches + 1).min(SEARCHES) / SEARCHES
    }
}

impl Keeper {
    pub(super) fn new(
        watched: Option<WatchedFiles>,
        shortfalls: Shortfalls,
        changes: Receiver<FilesChange>,
        woken: PipeReader,
    ) -> Self {
        let readers = Readers::new(watched.as_ref().is_some_and(WatchedFiles::holds));
        Self {
            watched,
            shortfalls,
            changes,
            woken,
            files: ProbedFiles::new(),
            uses: BTreeMap::new(),
            next: 0,
            numbers: HashMap::new(),
            readers,
            searched: None,
            search_from: Instant::now(),
            missed: 0,
        }
    }

    /// Runs until the recording ends.
    pub(super) fn run(mut self) {
        let mut looked = Instant::now();
        while self.wait() {
            self.answer();
            if looked.elapsed() >= STEP {
                looked = Instant::now();
                self.name_readers(LOADER_TIME);
                self.look();
            }
        }
        if let Some(watched) = &self.watched {
            watched.end();
        }
        self.name_readers(LAST_LOADER_TIME);
    }

    /// Waits for calls and files. Returns whether the recording continues.
    fn wait(&mut self) -> bool {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled = vec![readable(self.woken.as_fd())];
        polled.extend(
            self.watched
                .as_ref()
                .map(|watched| readable(watched.as_fd())),
        );
        let timeout = Timespec::try_from(STEP).ok();
        if poll(&mut polled, timeout.as_ref()).is_err() {
            return true;
        }
        let is_woken = polled.first().is_some_and(|fd| !fd.revents().is_empty());
        if is_woken {
            // At the end nobody writes any more.
            let _ = self.woken.read(&mut [0; 64]);
        }
        loop {
            match self.changes.try_recv() {
                Ok(FilesChange::Added(files)) => files.into_iter().for_each(|file| self.add(file)),
                Ok(FilesChange::Released(object)) => self.release(&object),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn add(&mut self, mut file: ProbedFile) {
        file.learn(self.watched.as_mut());
        let at = self.next;
        self.next += 1;
        if let Some(number) = file.number {
            self.numbers.insert(number, at);
        }
        self.files.insert(at, file);
        self.uses.insert(at, FileUse::new(trace_clock::now()));
    }

    /// Forgets a file. When it has probes again, it is another one.
    fn release(&mut self, object: &Arc<ObjectFile>) {
        let mut files = self.files.iter();
        let known = files.find(|(_, file)| Arc::ptr_eq(&file.object, object));
        let Some(at) = known.map(|(at, _)| *at) else {
            return;
        };
        self.uses.remove(&at);
        let file = self.files.remove(&at);
        let number = file.and_then(|file| file.number);
        if let Some((number, watched)) = number.zip(self.watched.as_mut()) {
            self.numbers.remove(&number);
            watched.forget(number);
        }
    }

    /// Attaches the probes of files that are executed again.
    fn answer(&mut self) {
        let calls = self.watched.as_mut().map(WatchedFiles::take_calls);
        for call in calls.into_iter().flatten() {
            if let Some(at) = self.numbers.get(&call.file).copied() {
                self.attach(at, call.pid, Some(call));
            }
        }
    }

    /// Attaches the probes of a file that a process executes, unless they are. `call` is that of its thread, if there was one.
    fn attach(&mut self, at: usize, pid: i32, call: Option<FileCall>) {
        let (Some(file), Some(of_file)) = (self.files.get(&at), self.uses.get_mut(&at)) else {
            return;
        };
        let links = file.links.as_ref();
        let Some((links, number)) = links.zip(file.number).filter(|_| of_file.is_idle) else {
            return;
        };
        let attached = links.attach();
        // If the kernel refuses, held threads wait for nothing. The next look has the program call again, and the next search tries again.
        if let Some(watched) = &self.watched {
            watched.set_attached(number);
        }
        if attached.is_err() {
            return;
        }
        of_file.is_idle = false;
        of_file.use_now(Some(pid));
        let since = |call: FileCall| trace_clock::now().saturating_sub(call.time);
        let gap = call.map(|call| Duration::from_nanos(since(call)));
        let is_held = call.is_some_and(|call| call.is_held);
        if !is_held || gap > Some(MAX_HOLD) {
            self.shortfalls.add(gap_of(file, pid, gap));
        }
    }

    /// Names the processes that have mapped files and did not execute them within a time.
    fn name_readers(&mut self, after: Duration) {
        let until = trace_clock::now().saturating_sub(after.as_nanos() as u64);
        let watched = self.watched.iter();
        let readers: Vec<_> = watched
            .flat_map(|watched| watched.take_readers(until))
            .collect();
        let places = readers.iter();
        let places: Vec<usize> = places
            .filter_map(|reader| self.numbers.get(&reader.file).copied())
            .collect();
        let mut mapped = HashMap::new();
        for reader in readers {
            let Some(at) = self.numbers.get(&reader.file).copied() else {
                continue;
            };
            // It may execute the file for longer than the program knows.
            let by_process = mapped
                .entry(reader.pid)
                .or_insert_with(|| mapped_by(reader.pid, &self.files, &places));
            let executes = by_process.get(&at).is_some_and(|mapped| mapped.executes);
            if let Some(file) = self.files.get(&at).filter(|_| !executes) {
                self.readers
                    .name(reader.name, reader.pid, (at, file), &self.shortfalls);
            }
        }
        self.readers.look_again(&self.files, &self.shortfalls);
    }

    /// Looks for files that nobody executes, and for what the program did not see.
    fn look(&mut self) {
        let mut due: HashMap<Option<i32>, Vec<usize>> = HashMap::new();
        for ((at, file), of_file) in self.files.iter().zip(self.uses.values_mut()) {
            let watched = file.number.zip(self.watched.as_ref());
            if let Some((number, watched)) = watched.filter(|_| of_file.is_idle) {
                // It is not if attaching has failed.
                watched.set_idle(number);
            }
            let executed = watched.map_or(0, |(number, watched)| watched.executed(number));
            if executed > of_file.used && !of_file.is_idle {
                *of_file = FileUse::new(executed);
            }
            if file.links.is_some() && !of_file.is_idle && of_file.is_search_due() {
                due.entry(of_file.executing).or_default().push(*at);
            }
        }
        let mut is_wanted = false;
        for (pid, places) in due {
            let mapped = pid.map(|pid| mapped_by(pid, &self.files, &places));
            let mapped = mapped.unwrap_or_default();
            for at in places {
                let executes = mapped.get(&at).is_some_and(|mapped| mapped.executes);
                match self.uses.get_mut(&at).filter(|_| executes) {
                    Some(of_file) => of_file.use_now(pid),
                    None => is_wanted = true,
                }
            }
        }
        let missed = self.watched.as_ref().map_or(0, WatchedFiles::missed);
        let is_idle = self.uses.values().any(|of_file| of_file.is_idle);
        let is_blind = self.watched.is_none() && !self.files.is_empty();
        let is_first = self.searched.is_none() && !self.files.is_empty();
        let is_late = self.searched.is_some_and(|at| at.elapsed() >= SEARCH_TIME);
        let has_missed = is_idle && missed != self.missed;
        is_wanted |= is_first || has_missed || is_late && (is_idle || is_blind);
        if is_wanted && Instant::now() >= self.search_from {
            self.missed = missed;
            self.search();
        }
    }

    fn search(&mut self) {
        let (work, from) = (WorkTime::begin(), trace_clock::now());
        let Found {
            executing,
            reading,
            is_denied,
            is_late,
        } = search(&self.files);
        let now = Instant::now();
        self.searched = Some(now);
        self.search_from = now + work.taken_with_helpers() * SEARCH_PAUSE;
        for (at, pid) in reading {
            if (self.uses.get(&at)).is_some_and(|of_file| !of_file.is_idle) {
                self.readers.suspect(pid, at);
            }
        }
        let places: Vec<usize> = self.files.keys().copied().collect();
        for at in places {
            let Some(of_file) = self.uses.get_mut(&at) else {
                continue;
            };
            match executing.get(&at) {
                Some(pid) if of_file.is_idle => self.attach(at, *pid, None),
                Some(pid) => of_file.use_now(Some(*pid)),
                None if of_file.is_idle || is_denied => {}
                None => {
                    of_file.searches = of_file.searches.saturating_add(1);
                    of_file.late = of_file.late.saturating_add(is_late.into());
                    if of_file.is_unused() && of_file.unused() >= IDLE_TIME {
                        self.detach(at, from);
                    }
                }
            }
        }
    }

    /// Detaches the probes of a file that nobody executed when a search began, `from`.
    fn detach(&mut self, at: usize, from: u64) {
        let (Some(file), Some(of_file)) = (self.files.get(&at), self.uses.get_mut(&at)) else {
            return;
        };
        let links = file.links.as_ref().zip(file.number);
        let Some(((links, number), watched)) = links.zip(self.watched.as_ref()) else {
            return;
        };
        watched.set_idle(number);
        if watched.executed(number) >= from {
            watched.set_attached(number);
            return;
        }
        of_file.is_idle = true;
        // A thread that executes it meanwhile has called, and is answered afterwards.
        links.detach();
    }
}

/// The report of a process that executed a file before its probes were attached again.
fn gap_of(file: &ProbedFile, pid: i32, gap: Option<Duration>) -> FoundShortfall {
    let probes = counted(file.events.len(), "probe");
    let after = match gap {
        Some(gap) => format!("{} after it was mapped", duration(gap.as_nanos() as f64)),
        None => "after it was mapped".to_owned(),
    };
    FoundShortfall {
        kind: ShortfallKind::Gap,
        path: file.path.clone(),
        pid: Some(pid),
        processes: 1,
        events: file.events.iter().take(6).cloned().collect(),
        sites: file.sites() as u64,
        build_id: file.build_id,
        gap_ns: gap.map(|gap| gap.as_nanos() as u64),
        found: format!(
            "attached {probes} again {after}; no process had executed the file for {}",
            duration(IDLE_TIME.as_nanos() as f64)
        ),
        effect: "hits in that time are not recorded".to_owned(),
        ..FoundShortfall::default()
    }
}

/// Loaders map a file as readers do, and execute it a moment later.
pub(super) const LOADER_TIME: Duration = Duration::from_secs(1);
/// Maximum number of programs and files that are named, and of processes that are looked at once more.
const MAX_NAMED: usize = 256;
const MAX_SUSPECTED: usize = 256;

/// What leaves readers alone, where children can be held until probes are attached to them (Linux 6.18).
pub const SPARED: &str = "record named processes or a command, so that others have no breakpoints";
/// The same where probes can be attached to single processes (Linux 6.11).
pub const SPARED_ALONE: &str =
    "record named processes without their children, so that others have no breakpoints";

/// The programs that were named, and the processes that may be readers.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// Name of the program, and place of the file.
    named: HashSet<(String, usize)>,
    /// Process and place of the file, and when it was seen.
    suspected: Vec<(i32, usize, Instant)>,
    /// Whether other processes than recorded ones and their children can be left without breakpoints.
    holds: bool,
}

impl Readers {
    pub(super) fn new(holds: bool) -> Self {
        Self {
            holds,
            ..Self::default()
        }
    }

    /// Notes a process that was seen reading. It is named if it still does a moment later.
    pub(super) fn suspect(&mut self, pid: i32, file: usize) {
        let is_known = self
            .suspected
            .iter()
            .any(|(of, at, _)| (*of, *at) == (pid, file));
        if !is_known && self.suspected.len() < MAX_SUSPECTED {
            self.suspected.push((pid, file, Instant::now()));
        }
    }

    /// Names the processes that were seen a moment ago and still read.
    pub(super) fn look_again(&mut self, files: &ProbedFiles, shortfalls: &Shortfalls) {
        const READS_ONLY: Mapped = Mapped {
            executes: false,
            reads: true,
        };
        let is_due = |(_, _, since): &mut (i32, usize, Instant)| since.elapsed() >= LOADER_TIME;
        let due: Vec<(i32, usize, Instant)> = self.suspected.extract_if(.., is_due).collect();
        let places: Vec<usize> = due.iter().map(|(_, at, _)| *at).collect();
        let mut mapped = HashMap::new();
        for (pid, at, _) in due {
            let Ok(stat) = Process::open(pid).and_then(|process| process.stat()) else {
                continue;
            };
            let by_process = mapped
                .entry(pid)
                .or_insert_with(|| mapped_by(pid, files, &places));
            if let Some(file) = files.get(&at)
                && by_process.get(&at) == Some(&READS_ONLY)
            {
                let name = String::from_utf8_lossy(&stat.comm).into_owned();
                self.name(name, pid, (at, file), shortfalls);
            }
        }
    }

    /// Names a program, once for each file.
    pub(super) fn name(
        &mut self,
        name: String,
        pid: i32,
        (at, file): (usize, &ProbedFile),
        shortfalls: &Shortfalls,
    ) {
        let key = (name, at);
        if self.named.len() >= MAX_NAMED || self.named.contains(&key) {
            return;
        }
        let remedy = match (self.holds, tells_processes()) {
            (true, _) => SPARED,
            (false, true) => SPARED_ALONE,
            (false, false) => "do not record a file while other files are written from it",
        };
        shortfalls.add(FoundShortfall {
            kind: ShortfallKind::Reader,
            path: file.path.clone(),
            pid: Some(pid),
            processes: 1,
            events: file.events.iter().take(1).cloned().collect(),
            sites: file.sites() as u64,
            build_id: file.build_id,
            found: format!(
                "{} ({pid}) reads {} while it has breakpoints",
                key.0,
                file.path.display()
            ),
            effect: "what it writes from it may be broken".to_owned(),
            remedy: remedy.to_owned(),
            ..FoundShortfall::default()
        });
        self.named.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};
    use std::path::Path;
    use std::sync::mpsc::channel;

    use super::*;

    /// Each keeps its place, whatever is released: calls and readers are found by it. A file that has probes again is another one.
    #[test]
    fn a_released_file_is_forgotten() {
        let (changes, take_changes) = channel();
        let (woken, mut wake) = pipe().unwrap();
        let mut keeper = Keeper::new(None, Shortfalls::default(), take_changes, woken);
        let own_path = std::env::current_exe().unwrap();
        let other = || ProbedFile::of_path(Path::new("/usr/bin/true"));
        let released = other();
        let object = Arc::clone(&released.object);
        let own = ProbedFile::of_path(&own_path);
        for change in [
            FilesChange::Added(vec![released, own]),
            FilesChange::Released(object),
            FilesChange::Added(vec![other()]),
        ] {
            changes.send(change).unwrap();
            wake.write_all(&[0]).unwrap();
        }
        assert!(keeper.wait());
        assert_eq!(keeper.files.keys().collect::<Vec<_>>(), [&1, &2]);
        assert_eq!(keeper.uses.keys().collect::<Vec<_>>(), [&1, &2]);
        let pid = std::process::id().cast_signed();
        let mapped = mapped_by(pid, &keeper.files, &[0, 1, 2]);
        assert_eq!(mapped.keys().collect::<Vec<_>>(), [&1]);
        assert!(mapped.values().all(|mapped| mapped.executes));
    }
}

//! All processes whose semaphores were incremented, and those that are recorded.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use usdtrec_attach::engine::{Counting, TaskFilter};
use usdtrec_buildid_cache::served::{Patience, read_maps};
use usdtrec_buildid_cache::{FileMapping, MappedInode};
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::process;
use usdtrec_kernel::trace_clock;

use super::counted_files::CountedFiles;
use super::file::CountedFile;
use super::gap::Gaps;
use super::left_raised::not_lowered;
use super::process::{Context, HandedOver, Process, Raise, Value};
use super::same_memory::is_shared;
use super::stored_increments::{StoredIncrements, start_of};
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// How long the end waits until the kernel has decremented what it counts.
const MAX_RELEASE_TIME: Duration = Duration::from_secs(10);

/// The processes, and what they have in common.
#[derive(Debug)]
pub(super) struct Table {
    files: CountedFiles,
    counting: Counting,
    kept: Mutex<StoredIncrements>,
    processes: Mutex<HashMap<u32, Arc<Mutex<Process>>>>,
    recorded: Mutex<Recorded>,
    gaps: Mutex<Gaps>,
    shortfalls: Shortfalls,
    /// A process that runs nothing before [`Table::raise_stopped`]; 0 for none.
    stopped: AtomicU32,
    /// Descriptors of what the kernel counts.
    owned: AtomicUsize,
}

/// The recorded processes.
#[derive(Debug)]
enum Recorded {
    All,
    These {
        pids: HashSet<u32>,
        /// Whether the processes that they start are recorded, too.
        with_children: bool,
    },
}

/// The outcome of an attempt for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Semaphores were incremented, or a child has a state of its own.
    Done,
    /// Nothing was to be done.
    Known,
    /// To be tried again: the memory is not mapped yet, or another thread has the process.
    Again,
    /// The process has ended, or cannot be read.
    Unreached,
}

/// What a process is tried for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    pub(super) pid: u32,
    /// Index of the file.
    pub(super) file: usize,
    /// What was incremented later is left as it is; ns of `CLOCK_MONOTONIC`.
    pub(super) since: u64,
    /// When the process began to run with the file; `None` if that was before the recording.
    pub(super) begun: Option<u64>,
}

impl Table {
    /// Nothing is incremented yet.
    pub(super) fn new(
        files: Vec<CountedFile>,
        filter: &TaskFilter,
        counting: Counting,
        shortfalls: Shortfalls,
    ) -> Self {
        Self {
            files: CountedFiles::new(files),
            counting,
            kept: Mutex::default(),
            processes: Mutex::default(),
            recorded: Mutex::new(Recorded::of_filter(filter)),
            gaps: Mutex::default(),
            shortfalls,
            stopped: AtomicU32::new(0),
            owned: AtomicUsize::new(0),
        }
    }

    /// Adds files, and processes that map them and are recorded. Returns the indexes of the files.
    pub(super) fn add(
        &self,
        files: Vec<CountedFile>,
        pids: impl Iterator<Item = u32>,
    ) -> Range<usize> {
        let first = self.files.len();
        let added = first..first + files.len();
        self.files.add(files);
        if let Recorded::These { pids: known, .. } = &mut *lock(&self.recorded) {
            known.extend(pids);
        }
        added
    }

    /// The file that appears so in mappings, by its index.
    pub(super) fn file(&self, identity: MappedInode) -> Option<usize> {
        self.files.iter().position(|file| file.identity == identity)
    }

    /// All files.
    pub(super) fn files(&self) -> Range<usize> {
        0..self.files.len()
    }

    /// Those of the files whose code a process maps; none if that cannot be read.
    pub(super) fn mapped(&self, pid: u32, files: Range<usize>) -> Vec<usize> {
        if files.is_empty() {
            return Vec::new();
        }
        let maps = read_maps(pid, Patience::Usual).unwrap_or_default();
        let code = FileMapping::parse_all(&maps).filter(|map| map.permissions[2]);
        let mapped: HashSet<MappedInode> = code.map(|map| map.mapped_inode()).collect();
        let files = self
            .files
            .iter()
            .enumerate()
            .take(files.end)
            .skip(files.start);
        let mapped = files.filter(|(_, file)| mapped.contains(&file.identity));
        mapped.map(|(index, _)| index).collect()
    }

    /// Whether a process is recorded.
    pub(super) fn is_recorded(&self, pid: u32) -> bool {
        match &*lock(&self.recorded) {
            Recorded::All => true,
            Recorded::These { pids, .. } => pids.contains(&pid),
        }
    }

    /// Notes a process that was started.
    pub(super) fn follow(&self, parent: u32, child: u32) {
        if let Recorded::These {
            pids,
            with_children,
        } = &mut *lock(&self.recorded)
        {
            if *with_children && pids.contains(&parent) {
                pids.insert(child);
            } else {
                pids.remove(&child);
            }
        }
    }

    /// Whether a process has a state.
    pub(super) fn has(&self, pid: u32) -> bool {
        lock(&self.processes).contains_key(&pid)
    }

    /// Increments the semaphores of those of the processes that are recorded and map one of these files. Returns these. `begun` is as in [`Mapped`].
    pub(super) fn raise_all(
        &self,
        pids: impl Iterator<Item = u32>,
        files: &Range<usize>,
        begun: Option<u64>,
    ) -> Vec<u32> {
        let recorded = pids.filter(|pid| self.is_recorded(*pid));
        let raised = recorded.filter(|pid| self.raise_in(*pid, files.clone(), begun));
        raised.collect()
    }

    /// The same for all processes of the host that mapped a file at `begun` or later.
    pub(super) fn raise_running(&self, begun: u64) -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        self.raise_all(pids, &self.files(), Some(begun))
    }

    /// Says that a process will be stopped before it runs anything, and its semaphores incremented then.
    pub(super) fn expect_stop(&self, pid: u32) {
        self.stopped.store(pid, Ordering::Relaxed);
    }

    /// Increments the semaphores of a process that is stopped. Returns whether there are any.
    pub(super) fn raise_stopped(&self, pid: u32) -> bool {
        let is_raised = self.raise_in(pid, self.files(), None);
        self.stopped.store(0, Ordering::Relaxed);
        is_raised
    }

    fn raise_in(&self, pid: u32, files: Range<usize>, begun: Option<u64>) -> bool {
        // Records since then are missing.
        let since = begun.map_or(0, |_| trace_clock::now());
        let mut is_raised = false;
        for file in self.mapped(pid, files) {
            let mapped = Mapped {
                pid,
                file,
                since,
                begun,
            };
            is_raised |= self.raise_with(mapped, |process| Some(lock(process))) == Attempt::Done;
        }
        is_raised
    }

    /// Increments the semaphores of a file in a process, unless another thread has the process.
    pub(super) fn raise(&self, mapped: Mapped) -> Attempt {
        self.raise_with(mapped, try_lock)
    }

    fn raise_with(
        &self,
        mapped: Mapped,
        lock_process: fn(&Mutex<Process>) -> Option<MutexGuard<'_, Process>>,
    ) -> Attempt {
        let Mapped {
            pid, file, since, ..
        } = mapped;
        let Ok(start) = start_of(pid) else {
            let known = lock(&self.processes).get(&pid).map(Arc::clone);
            return match known.is_some_and(|known| lock(&known).has_raised(file, since)) {
                true => Attempt::Known,
                false => Attempt::Unreached,
            };
        };
        let process = self.process(pid, start);
        let Some(mut process) = lock_process(&process) else {
            return Attempt::Again;
        };
        if process.start() != start {
            // Another process has its id.
            let descriptors = process.ended(self.context(pid));
            self.owned.fetch_sub(descriptors.len(), Ordering::Relaxed);
            self.close(descriptors);
            *process = Process::new(start);
        }
        let raised = process.raise(self.context(pid), file, since);
        let was_raised = process.has_raised(file, since);
        drop(process);
        match raised {
            Ok(Raise::Done) => {
                self.note_gap(mapped);
                Attempt::Done
            }
            Ok(Raise::Known) => Attempt::Known,
            Ok(Raise::NotYet) => Attempt::Again,
            // It ends now.
            Err(_) if was_raised => Attempt::Known,
            Err(_) => Attempt::Unreached,
        }
    }

    /// Notes the gap of a process whose semaphores were incremented just now.
    fn note_gap(&self, mapped: Mapped) {
        let Mapped {
            pid, file, begun, ..
        } = mapped;
        if let Some(begun) = begun.filter(|_| self.stopped.load(Ordering::Relaxed) != pid) {
            lock(&self.gaps).add(file, pid, trace_clock::now().saturating_sub(begun));
        }
    }

    /// Counts a process whose semaphores were not incremented.
    pub(super) fn count_unreached(&self, mapped: Mapped) {
        lock(&self.gaps).add_unreached(mapped.file);
    }

    /// Gives a child that was forked at `time` a state of its own, or decrements its semaphores if it is not recorded.
    pub(super) fn inherit(&self, parent: u32, child: u32, time: u64) -> Attempt {
        self.split(parent, child, time, self.is_recorded(child))
    }

    fn split(&self, parent: u32, child: u32, time: u64, is_recorded: bool) -> Attempt {
        let Some(process) = lock(&self.processes).get(&parent).map(Arc::clone) else {
            return Attempt::Known;
        };
        let Some(process) = try_lock(&process) else {
            return Attempt::Again;
        };
        if is_shared(parent, child) {
            return Attempt::Known;
        }
        let Ok(start) = start_of(child) else {
            return Attempt::Known;
        };
        match process.child(self.context(child), start, time, is_recorded) {
            Ok(Some(state)) => {
                let state = Arc::new(Mutex::new(state));
                let former = lock(&self.processes).insert(child, state);
                let former = former.as_deref().and_then(try_lock);
                // Another process had its id.
                if let Some(mut former) = former.filter(|former| former.start() != start) {
                    let descriptors = former.ended(self.context(child));
                    self.owned.fetch_sub(descriptors.len(), Ordering::Relaxed);
                    self.close(descriptors);
                }
                Attempt::Done
            }
            Ok(None) | Err(_) => Attempt::Known,
        }
    }

    /// Decrements the semaphores of a child that was forked at `time`, before those of its parent were decremented.
    pub(super) fn lower_child(&self, parent: u32, child: u32, time: u64) {
        let _ = self.split(parent, child, time, false);
    }

    /// Forgets the memory of a process of before its `execve(2)`. Returns `false` if another thread has the process.
    pub(super) fn executed(&self, pid: u32, time: u64) -> bool {
        let Some(process) = lock(&self.processes).get(&pid).map(Arc::clone) else {
            return true;
        };
        let Some(mut process) = try_lock(&process) else {
            return false;
        };
        process.executed(self.context(pid), time);
        true
    }

    /// Lets the kernel count the semaphores of a process.
    pub(super) fn hand_over(&self, pid: u32) -> io::Result<HandedOver> {
        if self.owned.load(Ordering::Relaxed) >= self.counting.most() {
            return Ok(HandedOver::Done);
        }
        let Some(process) = lock(&self.processes).get(&pid).map(Arc::clone) else {
            return Ok(HandedOver::Done);
        };
        let mut process = lock(&process);
        if start_of(pid)? != process.start() {
            return Ok(HandedOver::Done);
        }
        let before = process.owned();
        let handed = process.hand_over(self.context(pid), &self.counting);
        self.owned
            .fetch_add(process.owned() - before, Ordering::Relaxed);
        handed
    }

    /// Forgets a process if it has ended. Returns the descriptors of what the kernel counted.
    pub(super) fn forget_ended(&self, pid: u32) -> Vec<OwnedFd> {
        let Some(known) = lock(&self.processes).get(&pid).map(Arc::clone) else {
            return Vec::new();
        };
        let mut process = lock(&known);
        if start_of(pid).is_ok_and(|start| start == process.start()) {
            return Vec::new();
        }
        let descriptors = process.ended(self.context(pid));
        drop(process);
        let mut processes = lock(&self.processes);
        // Another process may have its id by now.
        if processes
            .get(&pid)
            .is_some_and(|now| Arc::ptr_eq(now, &known))
        {
            processes.remove(&pid);
        }
        self.owned.fetch_sub(descriptors.len(), Ordering::Relaxed);
        descriptors
    }

    /// Closes descriptors of processes that have ended, without waiting.
    pub(super) fn close(&self, descriptors: Vec<OwnedFd>) {
        drop(self.counting.close(descriptors));
    }

    /// Decrements all semaphores: first those that the kernel counts, then those that are incremented by hand.
    pub(super) fn lower_all(&self) {
        let all = self.all();
        let owned = all
            .iter()
            .flat_map(|(_, process)| lock(process).take_owned());
        let mut release = self.counting.close(owned.collect());
        release.wait(MAX_RELEASE_TIME);
        for (pid, process) in &all {
            let mut process = lock(process);
            if start_of(*pid).is_ok_and(|start| start == process.start()) {
                // One that ends now has no semaphores any more. What cannot be decremented stays noted, and is reported when it is read.
                let _ = process.lower(self.context(*pid));
            }
        }
    }

    /// Reads all semaphores, and reports those that are not 0.
    pub(super) fn read_back(&self) {
        for (pid, process) in self.all() {
            let process = lock(&process);
            if !start_of(pid).is_ok_and(|start| start == process.start()) {
                continue;
            }
            match process.values(self.context(pid)) {
                Ok(values) => (values.into_iter()).for_each(|value| self.report_left(pid, value)),
                // One that ends now has no memory any more.
                Err(error) if process::is_gone(&error) => {}
                Err(error) if process.is_raised() && start_of(pid).is_ok() => {
                    self.shortfalls.add(not_lowered(pid.cast_signed(), &error));
                }
                Err(_) => {}
            }
        }
    }

    fn report_left(&self, pid: u32, value: Value) {
        let Some(file) = self.files.get(value.file) else {
            return;
        };
        self.shortfalls.add(FoundShortfall {
            kind: ShortfallKind::SemaphoreLeft,
            path: file.path.clone(),
            pid: pid.try_into().ok(),
            processes: 1,
            found: format!(
                "the semaphore at {:#x} is {} after the end of the recording",
                value.address, value.value
            ),
            effect: "another tracer uses it, or it could not be decremented".to_owned(),
            ..FoundShortfall::default()
        });
    }

    /// Reports what processes lack.
    pub(super) fn report_gaps(&self) {
        std::mem::take(&mut *lock(&self.gaps)).report(&self.files, &self.shortfalls);
    }

    /// The state of a process, which is created if there is none.
    pub(super) fn process(&self, pid: u32, start: u64) -> Arc<Mutex<Process>> {
        let mut processes = lock(&self.processes);
        let process = processes
            .entry(pid)
            .or_insert_with(|| Arc::new(Mutex::new(Process::new(start))));
        Arc::clone(process)
    }

    fn all(&self) -> Vec<(u32, Arc<Mutex<Process>>)> {
        let processes = lock(&self.processes);
        let all = processes.iter();
        all.map(|(pid, process)| (*pid, Arc::clone(process)))
            .collect()
    }

    const fn context(&self, pid: u32) -> Context<'_> {
        Context {
            pid,
            files: &self.files,
            kept: &self.kept,
        }
    }
}

impl Recorded {
    fn of_filter(filter: &TaskFilter) -> Self {
        let (ids, with_children) = match filter {
            TaskFilter::All => return Self::All,
            TaskFilter::Processes(pids) => (pids, true),
            TaskFilter::ProcessesAlone(pids) => (pids, false),
            TaskFilter::Threads(tids) => (tids, false),
        };
        let pids = ids.iter().filter_map(|id| process_of(*id)).collect();
        Self::These {
            pids,
            with_children,
        }
    }
}

/// The process of a thread.
fn process_of(tid: u32) -> Option<u32> {
    let process = process::Process::open(tid.try_into().ok()?).ok()?;
    process.status().ok()?.tgid.try_into().ok()
}

/// Takes the lock unless another thread has it.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete before the lock is released, or a process of its own.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use usdtrec_attach::engine::UprobePmu;
    use usdtrec_buildid_cache::elf::ObjectFile;
    use usdtrec_kernel::host::identity;

    use super::*;

    #[test]
    fn only_files_that_a_process_maps_are_tried() {
        let path = std::env::current_exe().unwrap();
        let object = Arc::new(ObjectFile::open(&path).unwrap());
        let own = identity::of_file(&object).unwrap();
        let other = MappedInode {
            inode: own.inode + 1,
            ..own
        };
        let file = |identity| CountedFile {
            object: Arc::clone(&object),
            path: path.clone(),
            identity,
            semaphores: Vec::new(),
        };
        let counting = Counting::new(UprobePmu::find());
        let files = vec![file(other), file(own)];
        let table = Table::new(files, &TaskFilter::All, counting, Shortfalls::default());
        let added = table.add(vec![file(own), file(other)], std::iter::empty());
        let pid = std::process::id();
        assert_eq!(added, 2..4);
        assert_eq!(table.mapped(pid, table.files()), [1, 2]);
        assert_eq!(table.mapped(pid, added), [2]);
    }
}

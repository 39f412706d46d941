//! What is known of the recorded processes by their records: which live, what their threads are called, what they execute and have mapped.
//!
//! The table is the first stage: it reads each process record once, in the order of time, and later stages see what it has read as
//! [`Batch::changes`]. A stage that looks at these is an observer of processes. Stacks are unwound by the mappings of a process at a time
//! ([`ProcessTable::at`]), and another file of the recording begins with all processes as they are ([`ProcessTable::write`]), as one of a window does
//! with those of its begin, which are in a table of their own.
//!
//! Which process a record is about is said in [`ProcessChange`]. A record that is older than its process is about
//! an earlier one of that pid, and is left out. What was replaced or has ended is known until no sample can be as old. Memory is bounded
//! (`limits.rs`): what exceeds a limit is not known.

mod address_space;
mod made_up;

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use usdtrec_format::perf::{
    Mmap, MmapFile, ProcessChange, ProcessChangeKind, RawRecord, SampleType,
};

pub use self::address_space::{ProcessMapping, TableFile};
pub use self::made_up::KnownThread;

use self::address_space::AddressSpace;
use crate::batch::Batch;
use crate::limits::{MAX_FORMER_PROCESSES, MAX_MAPPED_FILES, MAX_MAPPINGS, MAX_THREADS};
use crate::stage::Stage;

/// Number of files from which on it is worth looking for those that no process maps.
const MANY_FILES: usize = 1 << 12;

/// What is known of processes.
#[derive(Debug)]
pub struct ProcessTable {
    /// `sample_type` of the records' sample ids.
    id_type: SampleType,
    /// Whether mappings are kept.
    has_mappings: bool,
    processes: HashMap<i32, KnownProcess>,
    /// Processes whose pids are those of later ones.
    former: Vec<FormerProcess>,
    /// Number of named threads of all processes.
    threads: usize,
    /// Number of mappings of all processes. Those that a child has from its parent count for each.
    mappings: usize,
    files: HashSet<Arc<TableFile>>,
    /// Number of the next file.
    next_file: u64,
    /// Number of files at which those are forgotten that no process maps.
    full_files: usize,
    /// Processes that have ended or have replaced mappings.
    changed: Vec<i32>,
    /// Number of changes so far of what a process has mapped.
    changes: u64,
    /// Samples up to this time have been passed on before the end of the pass, ns.
    known: u64,
}

/// A process: its pid and when it began.
#[derive(Clone, Debug, Default)]
pub struct KnownProcess {
    /// ns; 0 if it ran before the records begin.
    began: u64,
    /// When its last thread ended.
    ended: Option<u64>,
    parent: i32,
    /// Names of its threads.
    threads: BTreeMap<i32, Arc<[u8]>>,
    /// Number of threads that were too many to be named.
    unnamed: usize,
    space: AddressSpace,
    /// Whether it may execute memory that is that of no file.
    is_maker: bool,
    version: Option<MapsVersion>,
    /// A record of the recorder's own about it, which is repeated with it.
    note: Option<Arc<[u8]>>,
}

/// A process whose pid is that of a later one.
#[derive(Debug)]
struct FormerProcess {
    pid: i32,
    process: KnownProcess,
}

/// What a process has mapped since its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapsVersion {
    /// No other has this number.
    number: u64,
    /// Time of the change, ns.
    since: u64,
}

impl ProcessTable {
    /// A table that knows no process. `id_type` is the layout of the sample ids of the records.
    #[must_use]
    pub fn new(id_type: SampleType, has_mappings: bool) -> Self {
        Self {
            id_type,
            has_mappings,
            processes: HashMap::default(),
            former: Vec::new(),
            threads: 0,
            mappings: 0,
            files: HashSet::default(),
            next_file: 0,
            full_files: MANY_FILES,
            changed: Vec::new(),
            changes: 0,
            known: u64::MAX,
        }
    }

    /// Takes a record that is not earlier than those before. Returns what it says; `None` of other records and of those about earlier processes.
    pub fn take<'r>(&mut self, record: &RawRecord<'r>) -> Option<ProcessChange<'r>> {
        let mut change = ProcessChange::parse(record, self.id_type)?;
        let ProcessChange { time, pid, tid, .. } = change;
        let process = self.processes.get(&pid);
        if time > 0 && process.is_some_and(|process| process.began > time) {
            return None;
        }
        match &mut change.kind {
            ProcessChangeKind::ThreadBegan { parent_tid } => {
                let name = self.name(pid, *parent_tid);
                self.add_thread(pid, tid, name, true);
            }
            ProcessChangeKind::ProcessBegan {
                parent_pid,
                parent_tid,
                ran_already,
            } => {
                let (parent, is_new) = (*parent_pid, !*ran_already);
                let name = self.name(parent, *parent_tid);
                match is_new {
                    true => self.begin(pid, parent, time),
                    false => self.processes.entry(pid).or_default().parent = parent,
                }
                self.add_thread(pid, tid, name, true);
            }
            ProcessChangeKind::Named { name, executes } => {
                if *executes {
                    self.execute(pid, time);
                }
                self.add_thread(pid, tid, (*name).into(), *executes);
            }
            ProcessChangeKind::Mapped(map) => self.map(map, time),
            ProcessChangeKind::ThreadEnded { is_last } => {
                *is_last = self.end_thread(pid, tid, time);
            }
        }
        Some(change)
    }

    /// The process that had a pid at a time.
    #[must_use]
    pub fn at(&self, pid: i32, time: u64) -> Option<&KnownProcess> {
        let newest = self.processes.get(&pid);
        newest.filter(|newest| newest.began <= time).or_else(|| {
            let mut former = self.former.iter().rev();
            let had = |former: &&FormerProcess| former.pid == pid && former.process.began <= time;
            former.find(had).map(|former| &former.process)
        })
    }

    /// Keeps a record about a process that lives, in place of an earlier one, to be repeated with it. `time` is when it was so.
    pub fn note(&mut self, pid: i32, time: u64, record: &[u8]) {
        if let Some(process) = self.processes.get_mut(&pid)
            && process.began <= time
        {
            process.note = Some(record.into());
        }
    }

    /// The files that were first mapped after the one with a number; `None` for all.
    pub fn files_after(&self, number: Option<u64>) -> impl Iterator<Item = &TableFile> {
        let next = number.map_or(0, |number| number + 1);
        let has_new = next < self.next_file;
        let files = has_new.then_some(&self.files).into_iter().flatten();
        let files = files.map(|file| &**file);
        files.filter(move |file| file.number >= next)
    }

    /// The numbers of all files.
    #[must_use]
    pub fn file_numbers(&self) -> HashSet<u64> {
        self.files.iter().map(|file| file.number).collect()
    }

    /// Forgets what was replaced or ended before a time, for which no samples will come.
    pub fn forget_before(&mut self, time: u64) {
        let Self {
            processes,
            changed,
            mappings,
            threads,
            ..
        } = self;
        let is_needed = |process: &KnownProcess| process.ended.is_none_or(|ended| ended >= time);
        changed.retain(|pid| {
            let Some(process) = processes.get_mut(pid) else {
                return false;
            };
            if !is_needed(process) {
                *mappings -= process.space.len();
                *threads -= process.threads.len();
                processes.remove(pid);
                return false;
            }
            process.space.forget_before(time);
            process.ended.is_some() || process.space.has_replaced()
        });
        self.former.retain(|former| is_needed(&former.process));
    }

    /// The name of a thread; empty if it is not known.
    fn name(&self, pid: i32, tid: i32) -> Arc<[u8]> {
        let process = self.processes.get(&pid);
        let name = process.and_then(|process| process.threads.get(&tid));
        name.cloned().unwrap_or_default()
    }

    /// Adds a thread that begins, or names one.
    fn add_thread(&mut self, pid: i32, tid: i32, name: Arc<[u8]>, begins: bool) {
        let process = self.processes.entry(pid).or_default();
        // The begin of another thread may have been lost.
        process.ended = None;
        if self.threads < MAX_THREADS || process.threads.contains_key(&tid) {
            let is_new = process.threads.insert(tid, name).is_none();
            self.threads += usize::from(is_new);
            let was_unnamed = is_new && !begins;
            process.unnamed = process.unnamed.saturating_sub(was_unnamed.into());
        } else {
            process.unnamed += usize::from(begins);
        }
    }

    /// Begins a process with the mappings of its parent.
    fn begin(&mut self, pid: i32, parent_pid: i32, time: u64) {
        let parent = self.processes.get(&parent_pid);
        let room = MAX_MAPPINGS.saturating_sub(self.mappings);
        let process = KnownProcess {
            began: time,
            parent: parent_pid,
            space: parent
                .filter(|parent| parent.space.len() <= room)
                .map_or_else(AddressSpace::default, |parent| parent.space.inherited()),
            is_maker: parent.is_some_and(|parent| parent.is_maker),
            ..KnownProcess::default()
        };
        self.mappings += process.space.len();
        if let Some(mut former) = self.processes.insert(pid, process) {
            self.mappings -= former.space.len();
            self.threads -= former.threads.len();
            former.ended.get_or_insert(time);
            if self.former.len() < MAX_FORMER_PROCESSES {
                let process = former;
                self.former.push(FormerProcess { pid, process });
            }
        }
        self.note_change(pid, time);
    }

    /// A process begins another program: what it mapped before is gone, and so are its other threads.
    fn execute(&mut self, pid: i32, time: u64) {
        let process = self.processes.entry(pid).or_default();
        self.mappings -= process.space.len();
        self.threads -= process.threads.len();
        process.space.clear(time);
        process.threads.clear();
        process.unnamed = 0;
        process.is_maker = false;
        process.ended = None;
        self.changed.push(pid);
        self.note_change(pid, time);
    }

    fn map(&mut self, map: &Mmap<'_>, time: u64) {
        let range = map.start..map.start.saturating_add(map.len);
        if !self.has_mappings || map.cpu_mode != Mmap::USER || range.is_empty() {
            return;
        }
        let file = self.file(map.path, map.file);
        let process = self.processes.entry(map.pid).or_default();
        process.is_maker |= map.is_for_code();
        let file = file.filter(|_| self.mappings < MAX_MAPPINGS);
        let mapping = file.map(|file| ProcessMapping {
            range: range.clone(),
            offset: map.offset,
            file,
            protection: map.protection,
            flags: map.flags,
            is_executable: map.is_executable(),
            since: time,
        });
        let before = process.space.len();
        if process.space.insert(&range, mapping, time) {
            self.changed.push(map.pid);
        }
        self.mappings = self.mappings + process.space.len() - before;
        self.note_change(map.pid, time);
    }

    /// The one copy of a file; `None` if there are too many.
    fn file(&mut self, path: &[u8], identity: MmapFile) -> Option<Arc<TableFile>> {
        let file = TableFile {
            number: self.next_file,
            path: path.into(),
            identity,
        };
        if let Some(known) = self.files.get(&file) {
            return Some(Arc::clone(known));
        }
        if self.files.len() >= self.full_files {
            self.files.retain(|file| Arc::strong_count(file) > 1);
            self.full_files = (2 * self.files.len()).clamp(MANY_FILES, MAX_MAPPED_FILES);
        }
        if self.files.len() >= MAX_MAPPED_FILES {
            return None;
        }
        self.next_file += 1;
        let file = Arc::new(file);
        self.files.insert(Arc::clone(&file));
        Some(file)
    }

    /// Whether the thread was the last one of its process.
    fn end_thread(&mut self, pid: i32, tid: i32, time: u64) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else {
            return true;
        };
        match process.threads.remove(&tid) {
            Some(_) => self.threads -= 1,
            None => process.unnamed = process.unnamed.saturating_sub(1),
        }
        let is_last = process.threads.is_empty() && process.unnamed == 0;
        if is_last {
            process.ended = Some(time);
            self.changed.push(pid);
        }
        is_last
    }

    /// Notes that a process has other mappings.
    fn note_change(&mut self, pid: i32, time: u64) {
        self.changes += 1;
        let number = self.changes;
        if let Some(process) = self.processes.get_mut(&pid) {
            let before = process.version.map_or(0, |version| version.since);
            let since = before.max(time);
            process.version = Some(MapsVersion { number, since });
        }
    }
}

impl KnownProcess {
    /// The mapping at an address at a time.
    #[must_use]
    pub fn mapping(&self, address: u64, time: u64) -> Option<&ProcessMapping> {
        self.space.find(address, time)
    }

    /// What it has mapped, if that did not change since a time.
    #[must_use]
    pub fn version(&self, time: u64) -> Option<MapsVersion> {
        self.version.filter(|version| version.since < time)
    }

    /// Whether it has made code since it began its program.
    #[must_use]
    pub const fn is_maker(&self) -> bool {
        self.is_maker
    }
}

/// The table of a recording, which is the first of its stages, and which others look into.
#[derive(Clone, Debug)]
pub struct RecordedProcesses(Rc<RefCell<ProcessTable>>);

impl RecordedProcesses {
    /// The stage of a table.
    #[must_use]
    pub fn new(table: ProcessTable) -> Self {
        Self(Rc::new(RefCell::new(table)))
    }

    /// The table. It must not be held while a batch passes.
    #[must_use]
    pub fn table(&self) -> Ref<'_, ProcessTable> {
        self.0.borrow()
    }

    /// Samples up to a time are passed on before the end of the pass.
    pub fn know(&self, until: u64) {
        self.0.borrow_mut().known = until;
    }
}

impl Stage for RecordedProcesses {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        // Samples have rings of their own.
        let first = batch.records().next();
        if first.is_none_or(|first| first.sample().is_some()) {
            return batch;
        }
        let mut table = self.0.borrow_mut();
        let records = batch.records();
        let changes = records.filter_map(|record| table.take(&record.raw()));
        let changes = changes.collect();
        batch.with_changes(changes)
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        let mut table = self.0.borrow_mut();
        let known = std::mem::replace(&mut table.known, u64::MAX);
        table.forget_before(known);
        None
    }
}

#[cfg(test)]
mod tests;

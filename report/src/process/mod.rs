//! Processes over time: which thread was called what, and which process had which file mapped where.
//!
//! Worked out once from the trace's metadata blocks and then only asked, so that blocks of samples can be
//! decoded in parallel and in any order. The rules are perf's: a new thread has its parent's name; a new
//! process has its parent's mappings; `execve` starts from nothing; what was made up for processes that
//! already ran has time 0 and holds from the start.

mod cover;
mod living;
mod log;
mod names;
mod spaces;
#[cfg(test)]
mod tests;
mod texts;
mod threads;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use usdtrec_format::BuildId;

pub use self::log::ProcessLog;
pub use self::names::{Name, NameId};

use self::living::Living;
use self::log::{Change, Entry, KERNEL};
use self::names::Names;
use self::spaces::Spaces;
use self::texts::{Text, Texts};
use self::threads::Threads;

/// The processes of a trace.
#[derive(Debug, Default)]
pub struct Processes {
    names: Names,
    threads: Threads,
    spaces: Spaces,
    dsos: Vec<Dso>,
    /// The number of each of them.
    numbers: HashMap<Dso, DsoId>,
    /// Build-ids of files that the trace names elsewhere, by path, for mappings that carry none.
    build_ids: HashMap<PathBuf, BuildId>,
    /// Who lives, where something is to be forgotten.
    living: Option<Living>,
    /// Processes that began so far.
    begun: u32,
}

/// Which process of a pid, as pids are used again: the place of its FORK record among those of all processes, in the order of
/// time, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessNumber(u32);

impl ProcessNumber {
    /// The first process of its pid, whose FORK record is not in the trace.
    pub const UNKNOWN: Self = Self(0);
}

/// A mapped file of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DsoId(pub(crate) u32);

/// A file that processes mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dso {
    /// Path at the time, or a name such as `[vdso]`.
    pub path: PathBuf,
    /// Its build-id, where the trace says it.
    pub build_id: Option<BuildId>,
}

/// What a thread is called, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommSpan {
    /// The name; `None` if the trace does not say.
    pub name: Option<NameId>,
    /// The process whose main thread it is; of no meaning for other threads.
    pub process: ProcessNumber,
    /// First time, ns.
    pub from: u64,
    /// Time behind the last, ns; `u64::MAX` for the end.
    pub until: u64,
}

/// A mapping that an address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// File offset of the first address.
    pub offset: u64,
    /// The file.
    pub dso: DsoId,
}

impl Mapping {
    /// File offset of an address in the mapping.
    #[must_use]
    pub const fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }
}

impl Processes {
    /// The files with the processes that mapped them themselves, and did not inherit them.
    pub(crate) fn mappers(&self) -> Vec<(&Dso, BTreeSet<i32>)> {
        let mappers = self.spaces.mappers(self.dsos.len());
        self.dsos.iter().zip(mappers).collect()
    }

    /// Puts a log in order. `build_ids` are those of files that the trace names elsewhere, by path, for
    /// mappings that carry none.
    #[must_use]
    pub fn new(log: ProcessLog, build_ids: &[(&Path, BuildId)]) -> Self {
        let mut processes = Self {
            build_ids: build_ids
                .iter()
                .map(|(path, id)| ((*path).to_owned(), *id))
                .collect(),
            ..Self::default()
        };
        processes.learn(log);
        processes
    }

    /// Adds what happened after all that is known.
    pub(crate) fn learn(&mut self, log: ProcessLog) {
        let mut entries = log.entries;
        // Stable: of changes at the same time, in particular at 0, the file's order decides.
        entries.sort_by_key(|entry| entry.time);
        let mut files = HashMap::default();
        for entry in entries {
            self.note(&entry.change);
            self.replay(entry, &log.texts, &mut files);
        }
    }

    /// Notes from now on who lives.
    pub(crate) fn note_living(&mut self) {
        self.living = Some(Living::default());
    }

    /// Forgets what is of no use for samples after a time, once that may be much: what threads and processes that ended were called
    /// and had mapped. Names and files have new numbers then, and the old ones of the files are returned, in the new order.
    pub(crate) fn forget_before(&mut self, time: u64) -> Option<Vec<DsoId>> {
        let living = self.living.as_mut().filter(|living| living.is_due())?;
        let processes = living.processes();
        // A process is called as its main thread, which may end before others.
        let lives = |tid: i32| living.has(tid) || processes.contains(&tid);
        self.threads.forget_before(time, lives);
        self.spaces.forget_before(time, &processes);
        living.forgot(self.threads.len() + self.spaces.len());
        self.names.keep(self.threads.names_mut());
        Some(self.keep_files())
    }

    /// Keeps the files of mappings alone.
    fn keep_files(&mut self) -> Vec<DsoId> {
        let all = std::mem::take(&mut self.dsos);
        let mut numbers: HashMap<DsoId, DsoId> = HashMap::default();
        let mut old = Vec::new();
        for id in self.spaces.files_mut() {
            *id = *numbers.entry(*id).or_insert_with(|| {
                old.push(*id);
                DsoId(old.len() as u32 - 1)
            });
        }
        let kept = old.iter().filter_map(|id| all.get(id.0 as usize));
        self.dsos = kept.cloned().collect();
        let numbered = self.dsos.iter().cloned().zip((0..).map(DsoId));
        self.numbers = numbered.collect();
        old
    }

    /// `files` are those of the log that came already.
    fn replay(
        &mut self,
        entry: Entry<Text>,
        texts: &Texts,
        files: &mut HashMap<(Text, Option<Text>), DsoId>,
    ) {
        let time = entry.time;
        match entry.change {
            Change::Named {
                pid,
                tid,
                exec,
                name,
            } => {
                let name = self.names.intern(texts.get(name));
                self.threads.set(tid, time, Some(name));
                if exec {
                    self.spaces.begin(pid, time, None);
                }
            }
            Change::Forked {
                pid,
                tid,
                parent_pid,
                parent_tid,
                inherits,
            } => {
                let name = self.threads.newest(parent_tid);
                if pid == parent_pid {
                    self.threads.set(tid, time, name);
                } else {
                    // A stream may go on for ever.
                    self.begun = self.begun.wrapping_add(1).max(1);
                    let process = ProcessNumber(self.begun);
                    self.threads.begin(tid, time, name, process);
                    self.spaces.begin(pid, time, inherits.then_some(parent_pid));
                }
            }
            Change::Ended { .. } => {}
            Change::Mapped {
                pid,
                range,
                path,
                build_id,
            } => {
                let dso = *files
                    .entry((path, build_id))
                    .or_insert_with(|| self.dso(texts.get(path), build_id.map(|id| texts.get(id))));
                self.spaces.map(pid, time, range, dso);
            }
        }
    }

    /// Notes who lives.
    fn note(&mut self, change: &Change<Text>) {
        let Some(living) = &mut self.living else {
            return;
        };
        living.change();
        match *change {
            Change::Named { pid, tid, .. } | Change::Forked { pid, tid, .. } => {
                living.begin(pid, tid);
            }
            // That of a process whose threads are not known stays until its number is another one's.
            Change::Mapped { pid, .. } => living.begin_process(pid),
            Change::Ended { tid } => living.end(tid),
        }
    }

    fn dso(&mut self, path: &[u8], build_id: Option<&[u8]>) -> DsoId {
        let path = Path::new(OsStr::from_bytes(path)).to_owned();
        let told = build_id.and_then(|id| BuildId::new(id).ok());
        let build_id = told.or_else(|| self.build_ids.get(&path).copied());
        let dso = Dso { path, build_id };
        *self.numbers.entry(dso).or_insert_with_key(|dso| {
            self.dsos.push(dso.clone());
            DsoId(self.dsos.len() as u32 - 1)
        })
    }

    /// What a thread is called at a time.
    #[must_use]
    pub fn comm(&self, tid: i32, time: u64) -> CommSpan {
        self.threads.at(tid, time)
    }

    /// A thread name.
    #[must_use]
    pub fn name(&self, id: NameId) -> Option<&Name> {
        self.names.get(id)
    }

    /// A thread name, or the colon and number that stand for one that is not known, as perf has it.
    #[must_use]
    pub fn name_or_number(&self, id: Option<NameId>, number: i32) -> Cow<'_, str> {
        match id.and_then(|id| self.name(id)) {
            Some(name) => Cow::Borrowed(&name.text),
            None => Cow::Owned(format!(":{number}")),
        }
    }

    /// All thread names of the trace.
    pub fn names(&self) -> impl Iterator<Item = (NameId, &Name)> {
        self.names.iter()
    }

    /// What a process has mapped at an address at a time.
    #[must_use]
    pub fn mapping(&self, pid: i32, address: u64, time: u64) -> Option<Mapping> {
        self.spaces.find(pid, address, time)
    }

    /// What the kernel has at an address.
    #[must_use]
    pub fn kernel_mapping(&self, address: u64) -> Option<Mapping> {
        self.spaces.find(KERNEL, address, u64::MAX)
    }

    /// The first time after `time` at which the mappings of a process change; `u64::MAX` if they do not.
    #[must_use]
    pub fn mappings_until(&self, pid: i32, time: u64) -> u64 {
        self.spaces.stable_until(pid, time)
    }

    /// A mapped file.
    #[must_use]
    pub fn file(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.get(id.0 as usize)
    }

    /// All mapped files.
    #[must_use]
    pub fn files(&self) -> &[Dso] {
        &self.dsos
    }
}

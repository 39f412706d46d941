//! Processes over time: which thread was called what, and which process had which file mapped where.
//!
//! Worked out once from the trace's metadata blocks and then only asked, so that blocks of samples can be
//! decoded in parallel and in any order. The rules are perf's: a new thread has its parent's name; a new
//! process has its parent's mappings; `execve` starts from nothing; what was made up for processes that
//! already ran has time 0 and holds from the start.
//!
//! There may be millions of processes: the table of names is one array of 20 bytes per name. Mappings, which are
//! several times as many, are read only when an address is looked up (`TraceSession::mappings`).

pub(crate) mod cgroups;
pub mod comm;
pub(crate) mod cover;
pub mod hit_names;
pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod joined_log;
pub(crate) mod living;
pub(crate) mod log;
pub(crate) mod mappers;
pub(crate) mod mappings;
pub mod names;
pub(crate) mod pause_log;
pub mod process_field;
pub(crate) mod spaces;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
pub(crate) mod unaligned;

use std::borrow::Cow;
use std::path::PathBuf;

use usdtrec_format::BuildId;
use usdtrec_format::perf::Mmap;

pub use crate::process::comm::{CommSpan, ProcessNumber};
pub use crate::process::log::ProcessLog;
pub use crate::process::mappers::FileBuildId;
pub use crate::process::mappings::Mappings;
pub use crate::process::names::{EscapedName, NameId};

pub use crate::process::cgroups::RecordedFacts;
use crate::process::cgroups::{CgroupSpan, Cgroups};
use crate::process::hit_names::HitNames;
use crate::process::interner::StringPool;
use crate::process::living::LivingThreads;
use crate::process::log::{Naming, Renamed};
use crate::process::names::Names;
use crate::process::threads::{ThreadComm, Threads};

/// The threads of a trace, what they were called, and the control groups of processes.
#[derive(Debug, Default)]
pub struct Processes {
    names: Names,
    threads: Threads,
    cgroups: Cgroups,
    /// The threads that live, if those that ended are to be forgotten.
    living: Option<LivingThreads>,
    /// Processes that began so far.
    begun: u32,
}

/// A mapped file of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DsoId(pub u32);

/// A file that processes mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dso {
    /// Path at the time, or a name such as `[vdso]`.
    pub path: PathBuf,
    /// Its build-id, where the trace says it.
    pub build_id: Option<BuildId>,
    /// Whether it is memory of no file that is not executable.
    pub is_data: bool,
}

impl Dso {
    /// Whether it is executable memory of no file, where programs make code.
    pub(crate) fn is_for_code(&self) -> bool {
        !self.is_data && Mmap::is_memory(self.path.as_os_str().as_encoded_bytes())
    }

    /// Whether it is the code that the kernel gives each process.
    pub(crate) fn is_vdso(&self) -> bool {
        self.path.as_os_str() == "[vdso]"
    }
}

/// A mapping that has an address.
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
    /// Takes the names and control groups out of the log of a whole trace and puts them in order.
    #[must_use]
    pub fn new(log: &mut ProcessLog) -> Self {
        let (mut names, mut begun) = (Names::default(), 0);
        let namings = std::mem::take(&mut log.namings);
        let threads = Threads::settle(
            namings,
            |string| names.intern(log.strings.get(string)),
            || next(&mut begun),
        );
        let mut cgroups = Cgroups::default();
        cgroups.learn(std::mem::take(&mut log.cgroups), &log.strings);
        Self {
            names,
            threads,
            cgroups,
            living: None,
            begun,
        }
    }

    /// Adds what happened in a stream after all that is known.
    pub(crate) fn learn(&mut self, log: &mut ProcessLog) {
        let mut namings = std::mem::take(&mut log.namings);
        namings.sort_by_key(|naming| naming.time);
        for naming in namings {
            self.rename(naming, &log.strings);
        }
        let cgroups = std::mem::take(&mut log.cgroups);
        self.cgroups.learn(cgroups, &log.strings);
        let mut lives = std::mem::take(&mut log.lives);
        lives.sort_by_key(|life| life.time);
        if let Some(living) = &mut self.living {
            lives.iter().for_each(|life| living.note(life.change));
        }
    }

    fn rename(&mut self, naming: Naming, strings: &StringPool) {
        let (tid, time) = (naming.tid, naming.time.into());
        match naming.change {
            Renamed::Name(string) => {
                let name = self.names.intern(strings.get(string));
                self.threads.set(tid, time, Some(name));
            }
            Renamed::AsThread(parent) => {
                let name = self.threads.newest(parent);
                self.threads.set(tid, time, name);
            }
            Renamed::AsParent(parent) => {
                let name = self.threads.newest(parent);
                let process = next(&mut self.begun);
                self.threads.begin(tid, time, name, process);
            }
        }
    }

    /// Notes from now on who lives.
    pub(crate) fn note_living(&mut self) {
        self.living = Some(LivingThreads::default());
    }

    /// Whether names get new numbers when others are forgotten: those of a stream do.
    #[must_use]
    pub const fn renumbers_names(&self) -> bool {
        self.living.is_some()
    }

    /// Forgets what is of no use for samples of a stream after a time, once that may be much: what threads and processes that ended were
    /// called and had mapped. Names and files have new numbers then: those of the names of `hits` are replaced, and the old ones of the files are
    /// returned, in the new order.
    pub(crate) fn forget_before<'h>(
        &mut self,
        mappings: &mut Mappings,
        time: u64,
        hits: impl FnOnce() -> Vec<HitNames<'h>>,
    ) -> Option<Vec<DsoId>> {
        let living = self.living.as_mut().filter(|living| living.is_due())?;
        let processes = living.processes();
        // A process is called as its main thread, which may end before others.
        let lives = |tid: i32| living.has(tid) || processes.contains(&tid);
        let mut hits = hits();
        self.threads.forget_before(time, lives);
        let paths = hits.iter_mut().flat_map(HitNames::paths_mut);
        self.cgroups.forget_before(time, lives, paths);
        let files = mappings.forget_before(time, &processes);
        living.forgot(self.threads.len() + mappings.len());
        let comms = hits.iter_mut().filter_map(|hit| hit.comm.as_mut());
        self.names.keep(self.threads.names_mut().chain(comms));
        Some(files)
    }

    /// What a thread is called at a time.
    #[must_use]
    pub fn comm(&self, tid: i32, time: u64) -> CommSpan {
        self.threads.at(tid, time)
    }

    /// What the threads of a whole trace were called, each in the order of time.
    pub fn comms(&self) -> impl Iterator<Item = ThreadComm> {
        self.threads.settled()
    }

    /// A thread name.
    #[must_use]
    pub fn name(&self, id: NameId) -> Option<EscapedName<'_>> {
        self.names.get(id)
    }

    /// A thread name, or as perf has it, a colon and the number if the name is not known.
    #[must_use]
    pub fn name_or_number(&self, id: Option<NameId>, number: i32) -> Cow<'_, str> {
        match id.and_then(|id| self.name(id)) {
            Some(name) => Cow::Borrowed(name.text),
            None => Cow::Owned(format!(":{number}")),
        }
    }

    /// What is recorded of a process at a time.
    pub(crate) fn cgroup(&self, pid: i32, time: u64) -> CgroupSpan {
        self.cgroups.at(pid, time)
    }

    /// A string that is recorded of processes.
    pub fn recorded_name(&self, id: NameId) -> Option<EscapedName<'_>> {
        self.cgroups.path(id)
    }

    /// Whether the trace says the control group of any process.
    pub(crate) fn has_cgroups(&self) -> bool {
        !self.cgroups.is_empty()
    }

    /// Whether the trace says something of any process.
    pub(crate) fn has_recorded(&self, is_known: impl Fn(&RecordedFacts) -> bool) -> bool {
        self.cgroups.has(is_known)
    }

    /// All thread names of the trace.
    pub fn names(&self) -> impl Iterator<Item = (NameId, EscapedName<'_>)> {
        self.names.iter()
    }
}

/// The number of the next process. A stream may continue for ever.
fn next(begun: &mut u32) -> ProcessNumber {
    *begun = begun.wrapping_add(1).max(1);
    ProcessNumber(*begun)
}

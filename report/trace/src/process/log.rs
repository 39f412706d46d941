//! What a trace says about its processes, as read: names, forks, mappings, control groups and what the recorder found not to work in them, not
//! yet put in order.

use std::sync::Arc;

use usdtrec_format::perf::{
    Mmap, ProcessChange, ProcessChangeKind, RawRecord, RecordType, SampleType,
};
use usdtrec_format::trace::{FiredTrigger, Pause, ProcessCgroup, Shortfall, StringArgument};

use crate::process::cgroups::CgroupNote;
use crate::process::interner::{Region, Regions, StringId, StringPool};
use crate::process::mappers::{MappedFile, Mappers, RecordedFiles};
use crate::process::pause_log::PauseLog;
use crate::process::unaligned::PackedU64;

/// The process that the kernel's own mappings are noted for, as perf has it.
pub(crate) const KERNEL: i32 = -1;

/// Bytes of memory that a log may take. Compressed records of processes can be thousands of times as long as their file.
const MAX_MEMORY: usize = 1 << 30;

/// What of a trace is noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Names and mappings.
    #[default]
    All,
    /// Names: mappings are very many, and seldom requested.
    Names,
    /// Mappings.
    Mappings,
}

/// Changes of processes in the order of the file.
#[derive(Debug, Default)]
pub struct ProcessLog {
    scope: Scope,
    pub(crate) namings: Vec<Naming>,
    pub(crate) placings: Vec<Placing>,
    pub(crate) cgroups: Vec<CgroupNote>,
    /// What the recorder found not to work.
    shortfalls: Vec<Shortfall>,
    /// When probes were detached.
    pub(crate) pauses: PauseLog,
    /// What had the recorder write the file.
    fired: Option<FiredTrigger>,
    /// Which arguments are strings.
    string_arguments: Vec<StringArgument>,
    /// Only of streams.
    pub(crate) lives: Vec<Life>,
    pub(crate) strings: StringPool,
    pub(crate) regions: Regions,
    files: Arc<RecordedFiles>,
    pub(crate) mappers: Mappers,
    /// Bytes of memory that all take.
    memory: usize,
    /// Bytes that mappings would take that were not noted.
    passed_over: usize,
    left_out: u64,
}

/// A thread begins or gets a name. They are as many as processes, so they are kept small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    /// 0 for what ran before the recording began.
    pub(crate) time: PackedU64,
    pub(crate) tid: i32,
    pub(crate) change: Renamed,
}

/// What a thread is called from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Renamed {
    /// A name of its own.
    Name(StringId),
    /// As another thread, of the same process.
    AsThread(i32),
    /// As another thread, of the process that began this one.
    AsParent(i32),
}

/// Something happens to an address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    /// 0 for what ran before the recording began.
    pub(crate) time: PackedU64,
    pub(crate) pid: i32,
    pub(crate) change: Placed,
}

/// What happens to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Placed {
    /// It begins with nothing (`execve(2)`, and what ran already).
    Empty,
    /// It begins with the mappings of another process.
    Inherited(i32),
    /// Part of a file is mapped.
    Mapped {
        /// First address.
        start: PackedU64,
        /// Which part: its place among the [`Regions`].
        region: u32,
    },
}

impl Placed {
    /// The part of a file that is mapped.
    pub(crate) const fn region(self) -> Option<u32> {
        match self {
            Self::Mapped { region, .. } => Some(region),
            Self::Empty | Self::Inherited(_) => None,
        }
    }
}

/// A thread begins or ends; of use where something is to be forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) time: PackedU64,
    pub(crate) change: LivingChange,
}

/// What begins or ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LivingChange {
    Thread {
        pid: i32,
        tid: i32,
    },
    /// A process that mapped something; its threads may not be known.
    Process(i32),
    Ended(i32),
}

impl ProcessLog {
    /// An empty log, which notes who maps `files`.
    pub(crate) fn new(scope: Scope, files: Arc<RecordedFiles>) -> Self {
        Self {
            scope,
            files,
            ..Self::default()
        }
    }

    /// Takes a record, if it is about processes; others are skipped.
    ///
    /// `sample_type` is [`Attr::id_type`](usdtrec_format::perf::Attr::id_type). `None` if the record should
    /// be one of these and is too short.
    pub fn record(&mut self, record: &RawRecord<'_>, sample_type: SampleType) -> Option<()> {
        if record.kind == RecordType::HEADER_EVENT_TYPE {
            return self.push_ignored(record, sample_type);
        }
        if record.kind != RecordType::EXIT && ProcessChange::is(record) {
            self.push(&ProcessChange::parse(record, sample_type)?);
        }
        Some(())
    }

    /// As [`record`](Self::record), with what begins and ends, which matters only where something is to be forgotten.
    pub(crate) fn record_of_stream(
        &mut self,
        record: &RawRecord<'_>,
        sample_type: SampleType,
    ) -> Option<()> {
        if record.kind == RecordType::HEADER_EVENT_TYPE {
            return self.push_ignored(record, sample_type);
        }
        if ProcessChange::is(record) {
            let change = ProcessChange::parse(record, sample_type)?;
            self.push(&change);
            self.push_life(&change);
        }
        Some(())
    }

    pub(crate) fn push(&mut self, change: &ProcessChange<'_>) {
        if !self.has_room(LARGEST, 1) {
            return;
        }
        if self.scope != Scope::Mappings {
            self.push_naming(change);
            self.note_mapper(change);
        }
        match self.scope {
            Scope::All | Scope::Mappings => self.push_placing(change),
            // They may not fit once they are requested.
            Scope::Names if matches!(change.kind, ProcessChangeKind::Mapped(_)) => {
                self.passed_over += size_of::<Placing>() + size_of::<Region>();
                self.left_out += u64::from(self.passed_over > MAX_MEMORY);
            }
            Scope::Names => {}
        }
    }

    /// Takes a record that perf ignores.
    fn push_ignored(&mut self, record: &RawRecord<'_>, sample_type: SampleType) -> Option<()> {
        if ProcessCgroup::is(record) {
            return self.push_cgroup(record, sample_type);
        }
        let memory = size_of::<Shortfall>() + record.body.len();
        let is_known = self.scope != Scope::Mappings;
        if Shortfall::is(record) && is_known && self.has_room(memory, 1) {
            self.shortfalls.push(Shortfall::parse(record, sample_type)?);
            self.memory += memory;
        }
        if Pause::is(record) && is_known && self.has_room(PauseLog::most_memory(record), 1) {
            self.memory += self.pauses.push(Pause::parse(record, sample_type)?);
        }
        if FiredTrigger::is(record) && is_known && self.fired.is_none() {
            self.fired = FiredTrigger::parse(record, sample_type);
        }
        let memory = size_of::<StringArgument>();
        if StringArgument::is(record) && is_known && self.has_room(memory, 1) {
            let string = StringArgument::parse(record, sample_type)?;
            self.string_arguments.push(string);
            self.memory += memory;
        }
        Some(())
    }

    fn push_cgroup(&mut self, record: &RawRecord<'_>, sample_type: SampleType) -> Option<()> {
        let mut memory = size_of::<CgroupNote>();
        if self.scope != Scope::Mappings && self.has_room(memory, 1) {
            let strings = &mut self.strings;
            let note = CgroupNote::from_record(record, sample_type, |path| {
                let (string, more) = strings.intern(path);
                memory += more;
                string
            })?;
            self.memory += memory;
            self.cgroups.push(note);
        }
        Some(())
    }

    /// Notes who mapped the recorded files.
    fn note_mapper(&mut self, change: &ProcessChange<'_>) {
        if let Some(LoggedMapping { pid, path, map }) = LoggedMapping::new(change) {
            let build_id = map.build_id();
            let file = MappedFile { path, build_id };
            self.memory += self.mappers.note(&self.files, file, pid);
        }
    }

    fn push_naming(&mut self, change: &ProcessChange<'_>) {
        let renamed = match change.kind {
            ProcessChangeKind::Named { name, .. } => Renamed::Name(self.intern(name)),
            ProcessChangeKind::ThreadBegan { parent_tid } => Renamed::AsThread(parent_tid),
            ProcessChangeKind::ProcessBegan { parent_tid, .. } => Renamed::AsParent(parent_tid),
            ProcessChangeKind::Mapped(_) | ProcessChangeKind::ThreadEnded { .. } => return,
        };
        self.memory += size_of::<Naming>();
        self.namings.push(Naming {
            time: change.time.into(),
            tid: change.tid,
            change: renamed,
        });
    }

    fn push_placing(&mut self, change: &ProcessChange<'_>) {
        let (pid, placed) = match change.kind {
            ProcessChangeKind::Named { executes: true, .. } => (change.pid, Placed::Empty),
            ProcessChangeKind::ProcessBegan {
                parent_pid,
                ran_already,
                ..
            } => match ran_already {
                true => (change.pid, Placed::Empty),
                false => (change.pid, Placed::Inherited(parent_pid)),
            },
            ProcessChangeKind::Mapped(_) => {
                let Some(LoggedMapping { pid, path, map }) = LoggedMapping::new(change) else {
                    return;
                };
                let region = Region {
                    len: map.start.saturating_add(map.len) - map.start,
                    offset: map.offset,
                    path: self.intern(path),
                    build_id: map.build_id().map(|id| self.intern(id.as_bytes())),
                    is_data: Mmap::is_memory(map.path) && !map.is_executable(),
                };
                let (region, memory) = self.regions.number(region);
                self.memory += memory;
                let start = map.start.into();
                (pid, Placed::Mapped { start, region })
            }
            _ => return,
        };
        self.memory += size_of::<Placing>();
        self.placings.push(Placing {
            time: change.time.into(),
            pid,
            change: placed,
        });
    }

    pub(crate) fn push_life(&mut self, change: &ProcessChange<'_>) {
        let ProcessChange { pid, tid, .. } = *change;
        let life = match change.kind {
            ProcessChangeKind::Mapped(_) => match LoggedMapping::new(change) {
                Some(mapping) => LivingChange::Process(mapping.pid),
                None => return,
            },
            ProcessChangeKind::ThreadEnded { .. } => LivingChange::Ended(tid),
            _ => LivingChange::Thread { pid, tid },
        };
        if self.has_room(size_of::<Life>(), 1) {
            self.memory += size_of::<Life>();
            self.lives.push(Life {
                time: change.time.into(),
                change: life,
            });
        }
    }

    fn intern(&mut self, bytes: &[u8]) -> StringId {
        let (string, memory) = self.strings.intern(bytes);
        self.memory += memory;
        string
    }

    /// Appends the changes of another log.
    pub fn append(&mut self, other: Self) {
        self.left_out += other.left_out;
        self.passed_over += other.passed_over;
        self.left_out += u64::from(self.passed_over > MAX_MEMORY);
        let changes = other.namings.len()
            + other.placings.len()
            + other.cgroups.len()
            + other.lives.len()
            + other.pauses.len();
        if !self.has_room(other.memory, changes as u64) {
            return;
        }
        let (strings, memory) = self.strings.intern_all(&other.strings);
        self.memory += memory + size_of_val(&*other.namings) + size_of_val(&*other.placings);
        self.memory += size_of_val(&*other.lives) + size_of_val(&*other.cgroups);
        self.memory += self.mappers.append(other.mappers);
        self.namings.extend(other.namings.into_iter().map(|naming| {
            let change = match naming.change {
                Renamed::Name(string) => Renamed::Name(strings.get(string)),
                change => change,
            };
            Naming { change, ..naming }
        }));
        let cgroups = other.cgroups.into_iter();
        self.cgroups
            .extend(cgroups.map(|note| note.renumbered(|string| strings.get(string))));
        let numbers: Vec<u32> = other
            .regions
            .iter()
            .map(|region| {
                let (number, memory) = self.regions.number(Region {
                    path: strings.get(region.path),
                    build_id: region.build_id.map(|id| strings.get(id)),
                    ..*region
                });
                self.memory += memory;
                number
            })
            .collect();
        self.placings
            .extend(other.placings.into_iter().map(|placing| {
                let change = match placing.change {
                    Placed::Mapped { start, region } => Placed::Mapped {
                        start,
                        region: numbers.get(region as usize).copied().unwrap_or(region),
                    },
                    change => change,
                };
                Placing { change, ..placing }
            }));
        self.lives.extend(other.lives);
        self.shortfalls.extend(other.shortfalls);
        self.memory += self.pauses.append(other.pauses);
        self.fired = self.fired.take().or(other.fired);
        self.string_arguments.extend(other.string_arguments);
    }

    /// Has the numbers of what does not work begin with another one.
    pub(crate) fn renumber_shortfalls(&mut self, first: u32) {
        for shortfall in &mut self.shortfalls {
            shortfall.number = shortfall.number.saturating_add(first);
        }
    }

    /// Takes out which arguments are strings, in the order of the file.
    pub(crate) fn take_string_arguments(&mut self) -> Vec<StringArgument> {
        std::mem::take(&mut self.string_arguments)
    }

    /// Takes out what the recorder found not to work, in the order of the file.
    pub(crate) fn take_shortfalls(&mut self) -> Vec<Shortfall> {
        std::mem::take(&mut self.shortfalls)
    }

    /// Takes out when probes were detached.
    pub(crate) fn take_pauses(&mut self) -> PauseLog {
        std::mem::take(&mut self.pauses)
    }

    /// Takes out what had the recorder write the file.
    pub(crate) const fn take_fired(&mut self) -> Option<FiredTrigger> {
        self.fired.take()
    }

    /// Takes out who mapped the recorded files.
    pub(crate) fn take_mappers(&mut self) -> Mappers {
        std::mem::take(&mut self.mappers)
    }

    /// Whether so much more fits, which is `changes` changes.
    const fn has_room(&mut self, memory: usize, changes: u64) -> bool {
        let fits = self.memory + memory <= MAX_MEMORY;
        if !fits {
            self.left_out += changes;
        }
        fits
    }

    /// Changes that were left out because they would take too much memory.
    pub(crate) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// What a change takes at most, without its strings.
const LARGEST: usize = size_of::<Naming>() + size_of::<Placing>();

/// A mapping as it is noted: the kernel's own ones are those of a process, too.
struct LoggedMapping<'c> {
    pid: i32,
    path: &'c [u8],
    map: &'c Mmap<'c>,
}

impl<'c> LoggedMapping<'c> {
    /// `None` if the change is no mapping, or that of a guest.
    fn new(change: &'c ProcessChange<'_>) -> Option<Self> {
        let ProcessChangeKind::Mapped(map) = &change.kind else {
            return None;
        };
        let (pid, path) = match map.cpu_mode {
            Mmap::USER => (map.pid, map.path),
            Mmap::KERNEL => (KERNEL, kernel_name(map.path)),
            _ => return None,
        };
        Some(Self { pid, path, map })
    }
}

/// `[kernel.kallsyms]` of `[kernel.kallsyms]_text`, which names the symbol that the mapping begins at.
fn kernel_name(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|&byte| byte == b']');
    match path {
        [b'[', ..] => path
            .get(..end.map_or(path.len(), |end| end + 1))
            .unwrap_or(path),
        _ => path,
    }
}

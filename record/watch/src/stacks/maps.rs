//! What recorded processes have mapped where, by their process records.
//!
//! Records of several CPUs are not in the order of time: those of a pass over the rings are sorted, and what a process had mapped earlier is
//! kept for samples that are older than the pass. Memory is bounded: what exceeds a limit is not known, and stacks end there.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::BuildId;
use usdtrec_format::perf::{Comm, Mmap, MmapFile, RawRecord, RecordType, SampleType, Task};

use super::tables::{DescriptorRoom, FileElsewhere, MappedFile, RecordedMapping};

/// Maximum number of mappings of a process.
const MAX_MAPPINGS_OF_PROCESS: usize = 8 << 10;
/// Maximum number of mappings of all processes.
const MAX_MAPPINGS: usize = 1 << 20;
/// Maximum number of replaced mappings of a process.
const MAX_REPLACED_MAPPINGS: usize = 1 << 10;
/// Maximum number of files.
const MAX_FILES: usize = 1 << 16;
/// Maximum size of the unwind tables of all files, bytes: beyond it, all are read again when they are needed.
const MAX_TABLE_BYTES: usize = 512 << 20;

/// What recorded processes have mapped.
#[derive(Debug)]
pub(super) struct ProcessMaps {
    /// `sample_type` of the records' sample ids.
    id_type: SampleType,
    processes: HashMap<i32, ProcessMap>,
    files: Vec<MappedFile>,
    room: Rc<DescriptorRoom>,
    /// Open files: those with recorded probes.
    open: Vec<Arc<ObjectFile>>,
    /// Number of each file.
    numbers: HashMap<(Box<[u8]>, FileKey), usize>,
    /// Mappings of all processes.
    count: usize,
    /// Processes that have ended or have replaced mappings.
    changed: Vec<i32>,
    /// Number of changes so far of what a process has mapped.
    changes: u64,
}

/// What a process has mapped since its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MapsVersion {
    /// No other has this number.
    number: u64,
    /// Time of the change, ns.
    since: u64,
}

/// The identity of a file, for comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    Unknown,
    Inode(u32, u32, u64),
    BuildId(BuildId),
}

/// What a process has mapped.
#[derive(Debug, Default)]
struct ProcessMap {
    /// Mappings by their first addresses; they do not overlap.
    now: Vec<Mapping>,
    /// Mappings that were replaced, the last ones at the end.
    replaced: Vec<Mapping>,
    /// Whether it may execute memory that is that of no file.
    is_maker: bool,
    /// What it has mapped now.
    version: Option<MapsVersion>,
    /// When it last executed a program, ns.
    executed: u64,
    /// Number of its threads.
    threads: u64,
    /// When the last thread ended, ns.
    ended: Option<u64>,
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    /// Address after the last.
    end: u64,
    /// File offset of the first address.
    offset: u64,
    file: usize,
    is_executable: bool,
    /// From when to when it was there, ns.
    since: u64,
    until: u64,
}

/// The mapping at an address of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundMapping<'m> {
    pub(super) file: &'m MappedFile,
    /// File offset of the address.
    pub(super) offset: u64,
    pub(super) is_executable: bool,
    pub(super) place: RecordedMapping,
}

impl ProcessMaps {
    pub(super) fn new(id_type: SampleType) -> Self {
        Self {
            id_type,
            open: Vec::new(),
            processes: HashMap::default(),
            files: Vec::new(),
            room: Rc::new(DescriptorRoom::new()),
            numbers: HashMap::default(),
            count: 0,
            changed: Vec::new(),
            changes: 0,
        }
    }

    /// Adds files whose tables can be read whatever becomes of their paths and processes.
    pub(super) fn add_open(&mut self, open: Vec<Arc<ObjectFile>>) {
        for file in &mut self.files {
            if file.open.is_none() {
                file.open = open.iter().find(|open| file.is_of(open)).cloned();
            }
        }
        self.open.extend(open);
    }

    /// Takes process records, in the order of time.
    pub(super) fn learn<'r>(&mut self, records: impl Iterator<Item = RawRecord<'r>>) {
        let all = records.filter_map(|record| {
            let event = MapEvent::from_record(&record, self.id_type)?;
            Some((event.time(), event))
        });
        let mut all: Vec<(u64, MapEvent<'_>)> = all.collect();
        all.sort_by_key(|(time, _)| *time);
        for (time, event) in all {
            let pid = match &event {
                MapEvent::Map(map) => Some(map.pid),
                MapEvent::Exec(comm) => Some(comm.pid),
                MapEvent::Fork(task) => Some(task.pid),
                MapEvent::Exit(_) => None,
            };
            match event {
                MapEvent::Map(map) => self.map(&map, time),
                MapEvent::Exec(comm) => self.exec(comm.pid, time),
                MapEvent::Fork(task) => self.fork(&task, time),
                MapEvent::Exit(task) => self.exit(task.pid, time),
            }
            if let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid)) {
                self.changes += 1;
                let since = process
                    .version
                    .map_or(time, |version| version.since.max(time));
                process.version = Some(MapsVersion {
                    number: self.changes,
                    since,
                });
            }
        }
    }

    /// The files that were read and are not those at their paths.
    pub(super) fn files_elsewhere(&self) -> Vec<FileElsewhere> {
        let files = self.files.iter();
        files.filter_map(MappedFile::elsewhere).cloned().collect()
    }

    /// The mapping at an address of a process at a time.
    pub(super) fn find(&self, pid: i32, address: u64, time: u64) -> Option<FoundMapping<'_>> {
        let mapping = self.processes.get(&pid)?.find(address, time)?;
        Some(FoundMapping {
            file: self.files.get(mapping.file)?,
            offset: mapping.offset.wrapping_add(address - mapping.start),
            is_executable: mapping.is_executable,
            place: RecordedMapping {
                pid,
                start: mapping.start,
                end: mapping.end,
                since: mapping.since,
            },
        })
    }

    /// What a process has mapped, if it did not change since a time.
    pub(super) fn version(&self, pid: i32, time: u64) -> Option<MapsVersion> {
        let version = self.processes.get(&pid)?.version;
        version.filter(|version| version.since < time)
    }

    /// Whether a process has made code since it began its program.
    pub(super) fn is_maker(&self, pid: i32) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| process.is_maker)
    }

    /// Forgets what was replaced or ended before a time, for which no samples will come.
    pub(super) fn forget_before(&mut self, time: u64) {
        let Self {
            processes,
            changed,
            count,
            ..
        } = self;
        changed.retain(|pid| {
            let Some(process) = processes.get_mut(pid) else {
                return false;
            };
            if process.ended.is_some_and(|ended| ended < time) {
                *count -= process.now.len();
                processes.remove(pid);
                return false;
            }
            process.replaced.retain(|mapping| mapping.until >= time);
            process.ended.is_some() || !process.replaced.is_empty()
        });
        if self.files.iter().map(MappedFile::size).sum::<usize>() > MAX_TABLE_BYTES {
            self.files.iter_mut().for_each(MappedFile::forget);
        }
    }

    fn map(&mut self, map: &Mmap<'_>, time: u64) {
        let file = self.number(map.path, map.file);
        let process = self.processes.entry(map.pid).or_default();
        process.is_maker |= map.is_for_code();
        let before = process.now.len();
        let mapping = Mapping {
            start: map.start,
            end: map.start.saturating_add(map.len),
            offset: map.offset,
            file: file.unwrap_or_default(),
            is_executable: map.is_executable(),
            since: time,
            until: u64::MAX,
        };
        if process.insert(mapping, file.is_some() && self.count < MAX_MAPPINGS) {
            self.changed.push(map.pid);
        }
        self.count = self.count + process.now.len() - before;
    }

    fn exec(&mut self, pid: i32, time: u64) {
        let process = self.processes.entry(pid).or_default();
        self.count -= process.now.len();
        let all = std::mem::take(&mut process.now);
        for mapping in all {
            process.replace(mapping, time);
        }
        process.executed = time;
        process.is_maker = false;
        // The other threads have ended without being the last.
        process.threads = 1;
        process.ended = None;
        self.changed.push(pid);
    }

    fn fork(&mut self, task: &Task, time: u64) {
        if task.pid == task.parent_pid || task.already_ran {
            let process = self.processes.entry(task.pid).or_default();
            process.threads += 1;
            return;
        }
        let parent = self.processes.get(&task.parent_pid);
        let inherited = parent.map(|parent| parent.at(time)).unwrap_or_default();
        let is_maker = parent.is_some_and(|parent| parent.is_maker);
        let process = self.processes.entry(task.pid).or_default();
        if process.ended.is_some_and(|ended| ended <= time) {
            // The number of a process that has ended.
            self.count -= process.now.len();
            *process = ProcessMap::default();
        }
        process.threads += 1;
        if process.executed > time {
            return;
        }
        process.is_maker |= is_maker;
        let before = process.now.len();
        for mapping in inherited {
            if !process.overlaps(&mapping) {
                process.insert(mapping, self.count < MAX_MAPPINGS);
            }
        }
        self.count = self.count + process.now.len() - before;
    }

    fn exit(&mut self, pid: i32, time: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                process.ended = Some(time);
                self.changed.push(pid);
            }
        }
    }

    /// The number of a file; `None` if there are too many.
    fn number(&mut self, path: &[u8], identity: MmapFile) -> Option<usize> {
        let key = match identity {
            MmapFile::Unknown => FileKey::Unknown,
            MmapFile::Inode {
                major,
                minor,
                inode,
                ..
            } => FileKey::Inode(major, minor, inode),
            MmapFile::BuildId(id) => FileKey::BuildId(id),
        };
        let key = (Box::from(path), key);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = self.files.len();
        if number >= MAX_FILES {
            return None;
        }
        let mut file = MappedFile::new(path, identity, &self.room);
        file.open = self.open.iter().find(|open| file.is_of(open)).cloned();
        self.files.push(file);
        self.numbers.insert(key, number);
        Some(number)
    }
}

impl ProcessMap {
    fn find(&self, address: u64, time: u64) -> Option<&Mapping> {
        let after = self.now.partition_point(|mapping| mapping.start <= address);
        let now = after.checked_sub(1).and_then(|at| self.now.get(at));
        let has = |mapping: &&Mapping| {
            (mapping.start..mapping.end).contains(&address)
                && (mapping.since..mapping.until).contains(&time)
        };
        now.filter(has)
            .or_else(|| self.replaced.iter().rev().find(has))
    }

    /// The mapping at a time.
    fn at(&self, time: u64) -> Vec<Mapping> {
        let all = self.now.iter().chain(&self.replaced);
        let there = all.filter(|mapping| (mapping.since..mapping.until).contains(&time));
        let there = there.map(|mapping| Mapping {
            until: u64::MAX,
            ..*mapping
        });
        there.collect()
    }

    fn overlaps(&self, mapping: &Mapping) -> bool {
        let end = self.now.partition_point(|other| other.start < mapping.end);
        let last = end.checked_sub(1).and_then(|at| self.now.get(at));
        last.is_some_and(|last| last.end > mapping.start)
    }

    /// Adds a mapping, which replaces what it covers, also if it has no room itself. Returns whether it covers something.
    fn insert(&mut self, mapping: Mapping, has_room: bool) -> bool {
        let first = self.now.partition_point(|other| other.end <= mapping.start);
        let end = self.now.partition_point(|other| other.start < mapping.end);
        let end = end.max(first);
        let covered: Vec<Mapping> = self.now.drain(first..end).collect();
        let mut at = first;
        for other in &covered {
            if other.start < mapping.start {
                let before = Mapping {
                    end: mapping.start,
                    ..*other
                };
                self.now.insert(at, before);
                at += 1;
            }
            if other.end > mapping.end {
                let after = Mapping {
                    start: mapping.end,
                    offset: other.offset.wrapping_add(mapping.end - other.start),
                    ..*other
                };
                self.now.insert(at, after);
            }
            self.replace(*other, mapping.since);
        }
        if has_room && self.now.len() < MAX_MAPPINGS_OF_PROCESS {
            self.now.insert(at, mapping);
        }
        !covered.is_empty()
    }

    /// Keeps what was replaced at a time.
    fn replace(&mut self, mapping: Mapping, time: u64) {
        if self.replaced.len() >= MAX_REPLACED_MAPPINGS {
            self.replaced.drain(..MAX_REPLACED_MAPPINGS / 2);
        }
        self.replaced.push(Mapping {
            until: time,
            ..mapping
        });
    }
}

/// A record that changes what processes have mapped.
enum MapEvent<'r> {
    Map(Mmap<'r>),
    Exec(Comm<'r>),
    Fork(Task),
    Exit(Task),
}

impl<'r> MapEvent<'r> {
    fn from_record(record: &RawRecord<'r>, id_type: SampleType) -> Option<Self> {
        match record.kind {
            RecordType::MMAP2 => {
                let map = Mmap::parse(record, id_type)?;
                (map.cpu_mode == Mmap::USER).then_some(Self::Map(map))
            }
            RecordType::COMM => {
                let comm = Comm::parse(record, id_type)?;
                comm.exec.then_some(Self::Exec(comm))
            }
            RecordType::FORK => Task::parse_fork(record, id_type).map(Self::Fork),
            RecordType::EXIT => Task::parse_exit(record, id_type).map(Self::Exit),
            _ => None,
        }
    }

    /// ns.
    const fn time(&self) -> u64 {
        match self {
            Self::Map(map) => map.id.time,
            Self::Exec(comm) => comm.id.time,
            Self::Fork(task) | Self::Exit(task) => task.id.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{Records, SampleId};

    use super::*;

    const TYPE: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);

    fn id(pid: i32, time: u64) -> SampleId {
        SampleId {
            pid,
            tid: pid,
            time,
            ..SampleId::default()
        }
    }

    /// A mapping of 0x1000 bytes for each letter of the path, from file offset 0.
    fn mapped(pid: i32, time: u64, start: u64, path: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let map = Mmap {
            pid,
            tid: pid,
            start,
            len: 0x1000 * path.len() as u64,
            offset: 0,
            file: MmapFile::Unknown,
            protection: 5,
            flags: 2,
            cpu_mode: Mmap::USER,
            path: path.as_bytes(),
            id: id(pid, time),
        };
        map.encode(TYPE, &mut out);
        out
    }

    fn task(pid: i32, parent: i32, time: u64) -> Task {
        Task {
            pid,
            parent_pid: parent,
            tid: pid,
            parent_tid: parent,
            time,
            already_ran: false,
            id: id(pid, time),
        }
    }

    fn forked(pid: i32, parent: i32, time: u64) -> Vec<u8> {
        let mut out = Vec::new();
        task(pid, parent, time).encode_fork(TYPE, &mut out);
        out
    }

    fn executed(pid: i32, time: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let comm = Comm {
            pid,
            tid: pid,
            exec: true,
            name: b"new",
            id: id(pid, time),
        };
        comm.encode(TYPE, &mut out);
        out
    }

    fn exited(pid: i32, time: u64) -> Vec<u8> {
        let mut out = Vec::new();
        task(pid, 1, time).encode_exit(TYPE, &mut out);
        out
    }

    /// Number of the file and the offset in it.
    fn found(maps: &ProcessMaps, pid: i32, address: u64, time: u64) -> Option<(usize, u64)> {
        let found = maps.find(pid, address, time)?;
        let mut files = maps.files.iter();
        let number = files.position(|file| std::ptr::eq(file, found.file));
        Some((number.unwrap(), found.offset))
    }

    #[test]
    fn a_mapping_is_there_until_another_covers_it() {
        let mut maps = ProcessMaps::new(TYPE);
        // In the order of two CPUs, not of time.
        maps.learn(Records::new(
            &[mapped(7, 20, 0x2000, "b"), mapped(7, 10, 0x1000, "aaa")].concat(),
        ));
        let (a, b) = (0, 1);
        for (address, time, expected) in [
            (0x1000, 9, None),
            (0x1000, 10, Some((a, 0))),
            (0x2fff, 19, Some((a, 0x1fff))),
            (0x2fff, 20, Some((b, 0xfff))),
            (0x3000, 20, Some((a, 0x2000))),
            (0x3fff, 99, Some((a, 0x2fff))),
            (0x4000, 99, None),
        ] {
            let is = found(&maps, 7, address, time);
            assert_eq!(is, expected, "{address:#x} at {time}");
        }
        assert_eq!(maps.count, 3);
        maps.forget_before(20);
        assert_eq!(found(&maps, 7, 0x2fff, 19), Some((a, 0x1fff)));
        maps.forget_before(21);
        assert_eq!(found(&maps, 7, 0x2fff, 19), None);
        assert_eq!(found(&maps, 7, 0x2fff, 20), Some((b, 0xfff)));
    }

    #[test]
    fn children_have_their_parents_mappings_until_they_execute_a_program() {
        let mut maps = ProcessMaps::new(TYPE);
        maps.learn(Records::new(
            &[mapped(7, 10, 0x1000, "a"), forked(8, 7, 20)].concat(),
        ));
        maps.learn(Records::new(
            &[
                mapped(7, 30, 0x1000, "b"),
                executed(8, 40),
                mapped(8, 41, 0x1000, "c"),
            ]
            .concat(),
        ));
        for (pid, time, expected) in [
            (7, 25, Some(0)),
            (7, 35, Some(1)),
            (8, 25, Some(0)),
            (8, 39, Some(0)),
            (8, 40, None),
            (8, 41, Some(2)),
        ] {
            let is = found(&maps, pid, 0x1234, time).map(|(file, _)| file);
            assert_eq!(is, expected, "{pid} at {time}");
        }
        maps.learn(Records::new(&exited(8, 50)));
        maps.forget_before(50);
        assert!(found(&maps, 8, 0x1234, 49).is_some());
        maps.forget_before(51);
        assert!(found(&maps, 8, 0x1234, 49).is_none());
        assert_eq!(maps.count, 1);
        // The next process of that number.
        maps.learn(Records::new(&forked(8, 7, 60)));
        assert_eq!(found(&maps, 8, 0x1234, 60), Some((1, 0x234)));
    }

    #[test]
    fn what_is_too_much_is_unknown_and_not_what_was_there_before() {
        let mut maps = ProcessMaps::new(TYPE);
        maps.learn(Records::new(&mapped(7, 10, 0x1000, "a")));
        for number in 1..MAX_MAPPINGS_OF_PROCESS as u64 {
            maps.learn(Records::new(&mapped(7, 10, 0x1000 * (2 * number + 1), "a")));
        }
        assert_eq!(maps.count, MAX_MAPPINGS_OF_PROCESS);
        maps.learn(Records::new(&mapped(7, 20, 0x8000_0000, "b")));
        assert_eq!(found(&maps, 7, 0x8000_0000, 20), None);
        maps.count = MAX_MAPPINGS;
        maps.learn(Records::new(&mapped(7, 30, 0x1000, "b")));
        assert_eq!(found(&maps, 7, 0x1000, 25), Some((0, 0)));
        assert_eq!(found(&maps, 7, 0x1000, 30), None);
    }
}

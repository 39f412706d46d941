//! What is kept of process records that fell out of a window: the threads with their names, and what processes have mapped.
//!
//! A file begins with it, as one begins with the processes that ran already when recording began. What a process was at the time of a hit in the
//! window is what its records up to then say, so records are taken in the order of time, and the last ones wait for those of other CPUs.
//! Memory is bounded: what exceeds a limit is not in the file.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use usdtrec_format::perf::{
    Comm, Mmap, MmapFile, RawRecord, RecordType, Records, SampleId, SampleType, Task,
};
use usdtrec_format::trace::{Pause, ProcessCgroup, Shortfall, StringArgument};

use crate::known_thread::KnownThread;

/// Maximum number of threads of all processes.
const MAX_THREADS: usize = 1 << 16;
/// Maximum number of mappings of all processes. Those that a child has from its parent count for each.
const MAX_MAPPINGS: usize = 1 << 18;
/// Maximum number of mappings of a process.
const MAX_MAPPINGS_OF_PROCESS: usize = 1 << 16;
/// Maximum length of other records of one kind, bytes.
const MAX_BYTES: usize = 4 << 20;
/// How long records wait for earlier ones of other CPUs, ns: they are late by at most one pass over the rings.
const MAX_DELAY: u64 = 1_000_000_000;

/// What is known of processes, at the time of the first hits of a window.
#[derive(Debug)]
pub(crate) struct KeptProcesses {
    id_type: SampleType,
    processes: BTreeMap<i32, KeptProcess>,
    /// Number of threads of all processes.
    threads: usize,
    /// Number of mappings of all processes.
    mappings: usize,
    /// Files by their paths.
    files: HashMap<Arc<[u8]>, Vec<Arc<MappedFile>>>,
    /// Number of files.
    file_count: usize,
    /// Number of files at which those are forgotten that no process maps.
    full_files: usize,
    /// What the recorder said of all hits, by its meaning, oldest first.
    notes: BTreeMap<NoteKey, Arc<[u8]>>,
    /// Length of the notes, bytes.
    note_bytes: usize,
    /// The last records, for which earlier ones may come. Sorted by time.
    waiting: Vec<WaitingRecord>,
}

/// What a record of the recorder's own is about: a later one of the same replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NoteKey {
    Shortfall(u32),
    String(u64, u32, Option<u64>),
    Pause(u64),
}

#[derive(Clone, Debug)]
struct WaitingRecord {
    time: u64,
    bytes: Arc<[u8]>,
}

/// A process.
#[derive(Clone, Debug, Default)]
struct KeptProcess {
    parent: i32,
    /// Names of its threads.
    threads: BTreeMap<i32, Arc<[u8]>>,
    /// What it has mapped, by the first address. Mappings do not overlap.
    mappings: Arc<BTreeMap<u64, KeptMapping>>,
    /// The record of its control group.
    cgroup: Option<Arc<[u8]>>,
}

/// A mapping.
#[derive(Clone, Debug)]
struct KeptMapping {
    range: Range<u64>,
    offset: u64,
    file: Arc<MappedFile>,
    protection: u32,
    flags: u32,
    cpu_mode: u16,
}

/// A file that is mapped.
#[derive(Debug, PartialEq, Eq)]
struct MappedFile {
    path: Arc<[u8]>,
    file: MmapFile,
}

impl KeptProcesses {
    /// `id_type` is the layout of the sample ids of the records.
    pub(crate) fn new(id_type: SampleType) -> Self {
        /// Number of files from which on it is worth looking for those of no process.
        const MANY_FILES: usize = 4096;
        Self {
            id_type,
            processes: BTreeMap::new(),
            threads: 0,
            mappings: 0,
            files: HashMap::new(),
            file_count: 0,
            full_files: MANY_FILES,
            notes: BTreeMap::new(),
            note_bytes: 0,
            waiting: Vec::new(),
        }
    }

    /// Takes records that fell out of the window, after all that did before.
    pub(crate) fn take(&mut self, records: &[u8]) {
        let before = self.waiting.len();
        for record in Records::new(records) {
            let Some(bytes) = whole(records, &record) else {
                continue;
            };
            self.waiting.push(WaitingRecord {
                time: SampleId::split(record.body, self.id_type).map_or(0, |body| body.id.time),
                bytes: bytes.into(),
            });
        }
        if self.waiting.len() == before {
            return;
        }
        self.waiting.sort_by_key(|record| record.time);
        let newest = self.waiting.last().map_or(0, |record| record.time);
        let settled = newest.saturating_sub(MAX_DELAY);
        let settled = self
            .waiting
            .partition_point(|record| record.time <= settled);
        let waiting = self.waiting.split_off(settled);
        for WaitingRecord { bytes, .. } in std::mem::replace(&mut self.waiting, waiting) {
            if let Some(record) = Records::new(&bytes).next() {
                self.apply(&record, &bytes);
            }
        }
    }

    fn apply(&mut self, record: &RawRecord<'_>, bytes: &Arc<[u8]>) {
        let id_type = self.id_type;
        match record.kind {
            RecordType::MMAP | RecordType::MMAP2 => {
                if let Some(map) = Mmap::parse(record, id_type) {
                    self.map(&map);
                }
            }
            RecordType::COMM => {
                if let Some(comm) = Comm::parse(record, id_type) {
                    self.name(&comm);
                }
            }
            RecordType::FORK => {
                if let Some(task) = Task::parse_fork(record, id_type) {
                    self.fork(&task);
                }
            }
            RecordType::EXIT => {
                if let Some(task) = Task::parse_exit(record, id_type) {
                    self.exit(&task);
                }
            }
            _ => self.note(record, bytes),
        }
    }

    fn map(&mut self, map: &Mmap<'_>) {
        let range = map.start..map.start.saturating_add(map.len);
        if self.mappings >= MAX_MAPPINGS || range.is_empty() {
            return;
        }
        let mapping = KeptMapping {
            offset: map.offset,
            file: self.file(map.path, map.file),
            protection: map.protection,
            flags: map.flags,
            cpu_mode: map.cpu_mode,
            range,
        };
        let process = self.processes.entry(map.pid).or_default();
        let mappings = Arc::make_mut(&mut process.mappings);
        let before = mappings.len();
        make_room(mappings, &mapping.range);
        if mappings.len() < MAX_MAPPINGS_OF_PROCESS {
            mappings.insert(mapping.range.start, mapping);
        }
        self.mappings = self.mappings + mappings.len() - before;
    }

    /// The one copy of a file.
    fn file(&mut self, path: &[u8], file: MmapFile) -> Arc<MappedFile> {
        if self.file_count >= self.full_files {
            self.forget_files();
        }
        let shared = match self.files.get_key_value(path) {
            Some((path, known)) => match known.iter().find(|known| known.file == file) {
                Some(known) => return Arc::clone(known),
                None => Arc::clone(path),
            },
            None => path.into(),
        };
        let added = Arc::new(MappedFile {
            path: Arc::clone(&shared),
            file,
        });
        self.files
            .entry(shared)
            .or_default()
            .push(Arc::clone(&added));
        self.file_count += 1;
        added
    }

    /// Forgets the files that no process maps.
    fn forget_files(&mut self) {
        self.files.retain(|_, files| {
            files.retain(|file| Arc::strong_count(file) > 1);
            !files.is_empty()
        });
        self.file_count = self.files.values().map(Vec::len).sum();
        self.full_files = self.full_files.max(2 * self.file_count);
    }

    fn name(&mut self, comm: &Comm<'_>) {
        if comm.exec
            && let Some(process) = self.processes.get_mut(&comm.pid)
        {
            // What it mapped before is gone, and so are its other threads.
            self.mappings -= process.mappings.len();
            self.threads -= process.threads.len();
            process.mappings = Arc::default();
            process.threads.clear();
        }
        self.add_thread(comm.pid, comm.tid, comm.name.into());
    }

    fn add_thread(&mut self, pid: i32, tid: i32, name: Arc<[u8]>) {
        if self.threads >= MAX_THREADS {
            return;
        }
        let threads = &mut self.processes.entry(pid).or_default().threads;
        self.threads += usize::from(threads.insert(tid, name).is_none());
    }

    fn fork(&mut self, task: &Task) {
        let parent = self.processes.get(&task.parent_pid);
        let name = parent.and_then(|parent| parent.threads.get(&task.parent_tid));
        let name = name.cloned().unwrap_or_default();
        if task.pid == task.parent_pid {
            return self.add_thread(task.pid, task.tid, name);
        }
        let inherited = parent.map(|parent| Arc::clone(&parent.mappings));
        let inherited = inherited
            .filter(|mappings| !task.already_ran && self.mappings + mappings.len() <= MAX_MAPPINGS);
        // The id of a process that ended may be used again.
        if task.pid == task.tid && !task.already_ran {
            self.forget(task.pid);
        }
        let process = self.processes.entry(task.pid).or_default();
        process.parent = task.parent_pid;
        if let Some(inherited) = inherited {
            self.mappings += inherited.len();
            self.mappings -= process.mappings.len();
            process.mappings = inherited;
        }
        self.add_thread(task.pid, task.tid, name);
    }

    fn exit(&mut self, task: &Task) {
        let Some(process) = self.processes.get_mut(&task.pid) else {
            return;
        };
        self.threads -= usize::from(process.threads.remove(&task.tid).is_some());
        if process.threads.is_empty() {
            self.forget(task.pid);
        }
    }

    fn forget(&mut self, pid: i32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.mappings -= process.mappings.len();
            self.threads -= process.threads.len();
        }
    }

    /// Keeps what the recorder says of processes and of all hits.
    fn note(&mut self, record: &RawRecord<'_>, bytes: &Arc<[u8]>) {
        if let Some(cgroup) = ProcessCgroup::parse(record, self.id_type) {
            if let Some(process) = self.processes.get_mut(&cgroup.pid) {
                process.cgroup = Some(Arc::clone(bytes));
            }
            return;
        }
        let key = if let Some(shortfall) = Shortfall::parse(record, self.id_type) {
            NoteKey::Shortfall(shortfall.number)
        } else if let Some(string) = StringArgument::parse(record, self.id_type) {
            NoteKey::String(string.site, string.argument, string.address)
        } else if let Some(pause) = Pause::parse(record, self.id_type) {
            let key = NoteKey::Pause(pause.number);
            if pause.to_ns.is_some() {
                // It is over before the window begins.
                let known = self.notes.remove(&key);
                self.note_bytes -= known.map_or(0, |known| known.len());
                return;
            }
            key
        } else {
            return;
        };
        let known = self.notes.get(&key).map_or(0, |known| known.len());
        if self.note_bytes - known + bytes.len() <= MAX_BYTES {
            self.note_bytes = self.note_bytes - known + bytes.len();
            self.notes.insert(key, Arc::clone(bytes));
        }
    }

    /// A copy to be [written](Self::write): it takes no more records, and holds no file that nothing else does.
    pub(crate) fn copy(&self) -> Self {
        Self {
            processes: self.processes.clone(),
            notes: self.notes.clone(),
            waiting: self.waiting.clone(),
            ..Self::new(self.id_type)
        }
    }

    /// Passes the records that say all this to `sink`, those of a process at a time, and at the end those that wait.
    pub(super) fn write(&self, mut sink: impl FnMut(&[u8])) {
        let mut out = Vec::new();
        for (pid, process) in &self.processes {
            out.clear();
            self.put_threads(*pid, process, &mut out);
            for mapping in process.mappings.values() {
                self.put_mapping(*pid, mapping, &mut out);
            }
            if let Some(cgroup) = &process.cgroup {
                out.extend_from_slice(cgroup);
            }
            sink(&out);
        }
        let notes = self.notes.values();
        let waiting = self.waiting.iter().map(|record| &record.bytes);
        notes.chain(waiting).for_each(|bytes| sink(bytes));
    }

    /// The records that say all this.
    pub(crate) fn records(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.write(|records| all.extend_from_slice(records));
        all
    }

    fn put_threads(&self, pid: i32, process: &KeptProcess, out: &mut Vec<u8>) {
        // The process comes before its threads, also if its first one has ended.
        let first = process.threads.get(&pid).cloned().unwrap_or_default();
        let others = process.threads.iter().filter(|(tid, _)| **tid != pid);
        let threads = std::iter::once((&pid, &first)).chain(others);
        for (&tid, name) in threads {
            let parent = if tid == pid { process.parent } else { pid };
            let thread = KnownThread {
                pid,
                tid,
                parent,
                name: Some(&**name).filter(|name| !name.is_empty()),
            };
            thread.encode(self.id_type, out);
        }
    }

    fn put_mapping(&self, pid: i32, mapping: &KeptMapping, out: &mut Vec<u8>) {
        let Range { start, end } = mapping.range;
        let map = Mmap {
            pid,
            tid: pid,
            start,
            len: end - start,
            offset: mapping.offset,
            file: mapping.file.file,
            protection: mapping.protection,
            flags: mapping.flags,
            cpu_mode: mapping.cpu_mode,
            path: &mapping.file.path,
            id: SampleId {
                pid,
                tid: pid,
                ..SampleId::default()
            },
        };
        map.encode(self.id_type, out);
    }
}

/// A record with its header.
fn whole<'r>(records: &'r [u8], record: &RawRecord<'_>) -> Option<&'r [u8]> {
    const HEADER: usize = 8;
    records.get(record.offset..record.offset + HEADER + record.body.len())
}

/// Takes what a new mapping covers from the others, as the kernel does.
fn make_room(mappings: &mut BTreeMap<u64, KeptMapping>, range: &Range<u64>) {
    let before = mappings.range(..range.start).next_back();
    let before = before.filter(|(_, known)| known.range.end > range.start);
    let starts = before.into_iter().chain(mappings.range(range.clone()));
    let starts: Vec<u64> = starts.map(|(start, _)| *start).collect();
    for start in starts {
        let Some(known) = mappings.remove(&start) else {
            continue;
        };
        if range.end < known.range.end {
            let tail = KeptMapping {
                offset: known.offset.wrapping_add(range.end - start),
                range: range.end..known.range.end,
                ..known.clone()
            };
            mappings.insert(range.end, tail);
        }
        if start < range.start {
            let head = KeptMapping {
                range: start..range.start,
                ..known
            };
            mappings.insert(start, head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: SampleType = SampleType(
        SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0 | SampleType::IDENTIFIER.0,
    );
    const SECOND: u64 = 1_000_000_000;

    /// Process records of one recording.
    #[derive(Default)]
    struct Made(Vec<u8>);

    impl Made {
        const fn id(pid: i32, tid: i32, time: u64) -> SampleId {
            SampleId {
                pid,
                tid,
                time,
                stream_id: 0,
                id: 0,
                cpu: 0,
                identifier: 0,
            }
        }

        fn comm(mut self, time: u64, [pid, tid]: [i32; 2], name: &str, exec: bool) -> Self {
            Comm {
                pid,
                tid,
                exec,
                name: name.as_bytes(),
                id: Self::id(pid, tid, time),
            }
            .encode(IDS, &mut self.0);
            self
        }

        fn task([pid, tid]: [i32; 2], [parent_pid, parent_tid]: [i32; 2], time: u64) -> Task {
            Task {
                pid,
                parent_pid,
                tid,
                parent_tid,
                time,
                already_ran: false,
                id: Self::id(parent_pid, parent_tid, time),
            }
        }

        fn fork(mut self, time: u64, child: [i32; 2], parent: [i32; 2]) -> Self {
            Self::task(child, parent, time).encode_fork(IDS, &mut self.0);
            self
        }

        fn exit(mut self, time: u64, task: [i32; 2]) -> Self {
            Self::task(task, task, time).encode_exit(IDS, &mut self.0);
            self
        }

        fn map(mut self, time: u64, pid: i32, start: u64, path: &str) -> Self {
            Mmap {
                pid,
                tid: pid,
                start,
                len: 0x1000,
                offset: 0,
                file: MmapFile::Inode {
                    major: 8,
                    minor: 1,
                    inode: 5,
                    generation: 0,
                },
                protection: 5,
                flags: 2,
                cpu_mode: Mmap::USER,
                path: path.as_bytes(),
                id: Self::id(pid, pid, time),
            }
            .encode(IDS, &mut self.0);
            self
        }
    }

    /// What the records say: `fork PID/TID`, `name PID/TID NAME`, `map PID START PATH`, `exit PID/TID`.
    fn said(kept: &KeptProcesses) -> Vec<String> {
        let mut lines = Vec::new();
        kept.write(|records| {
            for record in Records::new(records) {
                if let Some(comm) = Comm::parse(&record, IDS) {
                    let name = String::from_utf8_lossy(comm.name);
                    lines.push(format!("name {}/{} {name}", comm.pid, comm.tid));
                } else if let Some(map) = Mmap::parse(&record, IDS) {
                    let path = String::from_utf8_lossy(map.path);
                    lines.push(format!("map {} {:#x} {path}", map.pid, map.start));
                } else if let Some(task) = Task::parse_fork(&record, IDS) {
                    lines.push(format!("fork {}/{}", task.pid, task.tid));
                } else if let Some(task) = Task::parse_exit(&record, IDS) {
                    lines.push(format!("exit {}/{}", task.pid, task.tid));
                }
            }
        });
        lines
    }

    /// The state of the records when others have followed them two seconds later.
    fn settled(made: Made) -> KeptProcesses {
        let mut kept = KeptProcesses::new(IDS);
        kept.take(&made.0);
        kept
    }

    #[test]
    fn a_child_has_what_its_parent_had_and_ended_ones_are_forgotten() {
        let made = Made::default()
            .fork(1, [10, 10], [1, 1])
            .comm(2, [10, 10], "parent", true)
            .map(3, 10, 0x1000, "/bin/app")
            .fork(4, [11, 11], [10, 10])
            .fork(5, [10, 12], [10, 10])
            .comm(6, [10, 12], "worker", false)
            .exit(7, [10, 10])
            .exit(8, [10, 12])
            .comm(5 * SECOND, [99, 99], "later", false);
        let kept = settled(made);
        assert_eq!(
            said(&kept),
            [
                "fork 11/11",
                "name 11/11 parent",
                "map 11 0x1000 /bin/app",
                "name 99/99 later"
            ]
        );
        assert_eq!((kept.threads, kept.mappings), (1, 1));
    }

    #[test]
    fn a_program_begins_without_what_the_one_before_it_had() {
        let made = Made::default()
            .comm(1, [10, 10], "sh", false)
            .map(2, 10, 0x1000, "/bin/sh")
            .comm(3, [10, 10], "app", true)
            .map(4, 10, 0x1000, "/bin/app")
            .map(5, 10, 0x5000, "/lib/first.so")
            .map(6, 10, 0x5000, "/lib/second.so")
            .comm(5 * SECOND, [99, 99], "later", false);
        let kept = settled(made);
        assert_eq!(
            said(&kept),
            [
                "fork 10/10",
                "name 10/10 app",
                "map 10 0x1000 /bin/app",
                "map 10 0x5000 /lib/second.so",
                "name 99/99 later"
            ]
        );
    }

    /// Records of other CPUs come late; the last ones are written as they are.
    #[test]
    fn records_are_taken_in_the_order_of_time() {
        let mut kept = KeptProcesses::new(IDS);
        kept.take(&Made::default().comm(9 * SECOND, [10, 10], "second", true).0);
        kept.take(&Made::default().map(8 * SECOND + 5, 10, 0x1000, "/old").0);
        kept.take(&Made::default().exit(9 * SECOND + 1, [10, 10]).0);
        assert_eq!(
            said(&kept),
            ["map 10 0x1000 /old", "name 10/10 second", "exit 10/10"]
        );
        kept.take(&Made::default().comm(20 * SECOND, [9, 9], "later", false).0);
        assert_eq!(said(&kept), ["name 9/9 later"]);
        assert_eq!((kept.threads, kept.mappings), (0, 0));
    }

    /// A library is mapped as a whole, and its segments over that.
    #[test]
    fn a_mapping_over_another_one_leaves_the_rest_of_it() {
        let file = Arc::new(MappedFile {
            path: b"/lib/x"[..].into(),
            file: MmapFile::Inode {
                major: 8,
                minor: 1,
                inode: 5,
                generation: 0,
            },
        });
        let mapping = |range: Range<u64>, offset: u64| KeptMapping {
            range,
            offset,
            file: Arc::clone(&file),
            protection: 5,
            flags: 2,
            cpu_mode: Mmap::USER,
        };
        let mut mappings = BTreeMap::new();
        for (range, offset) in [
            (0x1000..0x9000, 0),
            (0x9000..0xa000, 0x70),
            (0x3000..0x4000, 0x50),
            (0x8000..0x9800, 0x60),
        ] {
            make_room(&mut mappings, &range);
            mappings.insert(range.start, mapping(range, offset));
        }
        let left = mappings
            .values()
            .map(|known| (known.range.clone(), known.offset));
        let expected = [
            (0x1000..0x3000, 0),
            (0x3000..0x4000, 0x50),
            (0x4000..0x8000, 0x3000),
            (0x8000..0x9800, 0x60),
            (0x9800..0xa000, 0x870),
        ];
        assert_eq!(left.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn memory_for_processes_is_bounded() {
        let mut kept = KeptProcesses::new(IDS);
        let mut made = Made::default();
        for pid in 0..MAX_THREADS as i32 + 100 {
            made = made.comm(1, [pid, pid], "x", false);
        }
        for start in 0..MAX_MAPPINGS_OF_PROCESS as u64 + 100 {
            made = made.map(2, 5, start << 12, "/lib/x");
        }
        kept.take(&made.0);
        kept.take(&Made::default().comm(9 * SECOND, [9, 9], "later", false).0);
        assert_eq!(kept.threads, MAX_THREADS);
        assert_eq!(kept.mappings, MAX_MAPPINGS_OF_PROCESS);
        assert_eq!(kept.file_count, 1);
    }
}

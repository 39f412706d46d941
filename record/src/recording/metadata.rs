//! Processes that run already when recording begins: synthesized FORK, COMM and MMAP2 records, so that the trace has their names and
//! mappings.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::served::{Patience, read_maps};
use usdtrec_buildid_cache::{DeviceNumber, FileMapping, MappedInode, MemoryMapping};
use usdtrec_format::perf::{Mmap, MmapFile, SampleId, SampleType};
use usdtrec_kernel::host::process::Process;
use usdtrec_watch::process_table::KnownThread;

use crate::recording::build_ids::{BuildIds, KnownInodes, NewFiles};
use crate::recording::following::settings::Following;
use crate::recording::slow_files::SlowFile;
use crate::recording::sought_files::SoughtFiles;
use crate::recording::unread_files::UnreadCounts;

/// Records of the processes that may hit a probe, and the files that are not known. Processes that end meanwhile are omitted.
pub(super) fn synthesise(wanted: &Wanted) -> Synthesised {
    let target = &wanted.target;
    let mut synthesis = Synthesis {
        sample_type: wanted.sample_type,
        data: wanted.data,
        known: wanted.known.clone(),
        out: Vec::new(),
        build_ids: BuildIds::default(),
        unanswered: Vec::new(),
    };
    synthesis.build_ids.seek(wanted.sought.clone());
    for pid in pids(target) {
        if let Ok(process) = Process::open(pid) {
            // A process that ends while it is read has no further records.
            let _ = synthesis.process(&process);
        }
    }
    Synthesised {
        records: synthesis.out,
        unread: synthesis.build_ids.unread(),
        new_files: synthesis.build_ids.take_new(),
        put_off: synthesis.build_ids.take_put_off(),
        unanswered: synthesis.unanswered,
        known: synthesis.build_ids.known_inodes(),
    }
}

/// What is read of the processes that run.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) target: Target,
    pub(super) sample_type: SampleType,
    /// Whether readable mappings without code have records, too.
    pub(super) data: bool,
    pub(super) known: KnownFiles,
    /// Of which files hits may be missing if they cannot be read.
    pub(super) sought: SoughtFiles,
}

/// Which of the files that processes map are known: they were read before probes were attached.
#[derive(Clone, Debug)]
pub(super) enum KnownFiles {
    /// None of them.
    None,
    /// Files of processes that began before a time, ns since boot.
    Before(u64),
    /// These. Which process maps one does not matter: one that began long ago may have loaded a library since.
    Inodes(Arc<HashSet<MappedInode>>),
}

impl KnownFiles {
    pub(super) fn new(target: &Target, following: &Following) -> Self {
        match (target, &following.read) {
            (Target::Processes(_) | Target::Threads(_), _) => Self::None,
            (Target::All, Some(inodes)) => Self::Inodes(Arc::clone(inodes)),
            (Target::All | Target::Command(_), _) => Self::Before(following.read_at),
        }
    }

    fn has(&self, map: &FileMapping, process_began: u64) -> bool {
        match self {
            Self::None => false,
            Self::Before(time) => process_began < *time,
            Self::Inodes(inodes) => {
                let [_, _, executable] = map.permissions;
                !executable || inodes.contains(&map.mapped_inode())
            }
        }
    }
}

/// What was read of them.
#[derive(Debug, Default)]
pub(super) struct Synthesised {
    pub(super) records: Vec<u8>,
    /// Files that may be unknown.
    pub(super) new_files: NewFiles,
    /// Numbers of these files that could not be read.
    pub(super) unread: UnreadCounts,
    /// Those that did not answer.
    pub(super) put_off: Vec<SlowFile>,
    /// Processes whose mappings could not be read in time.
    pub(super) unanswered: Vec<i32>,
    /// All files that were opened.
    pub(super) known: KnownInodes,
}

/// Process ids of the target.
pub(super) fn pids(target: &Target) -> Vec<i32> {
    let ids = |ids: &[u32]| {
        ids.iter()
            .filter_map(|&id| i32::try_from(id).ok())
            .collect::<Vec<_>>()
    };
    match target {
        // The children of a command are unknown here: any process may be one.
        Target::All | Target::Command(_) => {
            let all = Process::all().into_iter().flatten();
            all.map(|process| process.pid).collect()
        }
        Target::Processes(pids) => ids(pids),
        // The process of a thread is in its status; two threads may share it.
        Target::Threads(tids) => {
            let threads = ids(tids)
                .into_iter()
                .filter_map(|tid| Process::open(tid).ok());
            let mut pids: Vec<i32> = threads
                .filter_map(|thread| Some(thread.status().ok()?.tgid))
                .collect();
            pids.sort_unstable();
            pids.dedup();
            pids
        }
    }
}

/// Records being made up.
struct Synthesis {
    sample_type: SampleType,
    /// Whether mappings without code have records, too.
    data: bool,
    known: KnownFiles,
    out: Vec<u8>,
    build_ids: BuildIds,
    unanswered: Vec<i32>,
}

impl Synthesis {
    fn process(&mut self, process: &Process) -> io::Result<()> {
        let stat = process.stat()?;
        self.thread(KnownThread {
            pid: process.pid,
            tid: process.pid,
            parent: stat.ppid,
            name: Some(&stat.comm),
        });
        // Kernel threads and processes of other users have no maps to read; their names still count.
        let maps = read_maps(process.pid.cast_unsigned(), Patience::Usual);
        if matches!(&maps, Err(error) if error.kind() == io::ErrorKind::TimedOut) {
            self.unanswered.push(process.pid);
        }
        let maps = maps.unwrap_or_default();
        for map in FileMapping::parse_all(&maps) {
            let is_known = self.known.has(&map, stat.started());
            self.build_ids.keep_files(!is_known);
            self.mapping(process.pid, &map);
        }
        if !self.data {
            let moved = moved_files(&maps);
            moved.iter().for_each(|map| self.record(process.pid, map));
        }
        for map in MemoryMapping::parse_all(&maps) {
            self.memory(process.pid, &map);
        }
        for tid in process.threads()? {
            if tid != process.pid
                && let Ok(stat) = process.thread_stat(tid)
            {
                self.thread(KnownThread {
                    pid: process.pid,
                    tid,
                    parent: process.pid,
                    name: Some(&stat.comm),
                });
            }
        }
        Ok(())
    }

    fn thread(&mut self, thread: KnownThread<'_>) {
        thread.encode(self.sample_type, &mut self.out);
    }

    /// Executable mappings of files, as the kernel reports them.
    fn mapping(&mut self, pid: i32, map: &FileMapping) {
        let [readable, _, executable] = map.permissions;
        if executable || self.data && readable {
            self.record(pid, map);
        }
    }

    fn record(&mut self, pid: i32, map: &FileMapping) {
        let path = map.display_path();
        let path = path.as_os_str().as_bytes();
        let (DeviceNumber { major, minor }, inode) = (map.device, map.inode);
        let build_id = self.build_ids.of_mapping(pid, map);
        let unknown = MmapFile::Inode {
            major,
            minor,
            inode,
            generation: 0,
        };
        let record = Mmap {
            offset: map.offset,
            file: build_id.map_or(unknown, MmapFile::BuildId),
            protection: protection(map.permissions),
            path,
            ..mapped(pid, &map.range)
        };
        record.encode(self.sample_type, &mut self.out);
    }

    /// Executable memory where programs make code, as the kernel reports it.
    fn memory(&mut self, pid: i32, map: &MemoryMapping) {
        let [_, _, executable] = map.permissions;
        let path = if map.name.is_empty() {
            b"//anon"
        } else {
            map.name.as_slice()
        };
        if !executable || !Mmap::is_memory(path) {
            return;
        }
        let record = Mmap {
            protection: protection(map.permissions),
            path,
            ..mapped(pid, &map.range)
        };
        record.encode(self.sample_type, &mut self.out);
    }
}

/// The first mapping of each file of a process that has no executable mapping, although there is executable memory between its mappings: the
/// program has moved its code.
fn moved_files(maps: &[u8]) -> Vec<FileMapping> {
    let all: Vec<FileMapping> = FileMapping::parse_all(maps).collect();
    let of_files = all.iter().map(|map| (map.permissions, &map.range));
    let memory: Vec<MemoryMapping> = MemoryMapping::parse_all(maps).collect();
    let of_memory = memory.iter().map(|map| (map.permissions, &map.range));
    let mut code: Vec<u64> = of_files
        .chain(of_memory)
        .filter(|(permissions, _)| permissions[2])
        .map(|(_, range)| range.start)
        .collect();
    code.sort_unstable();
    let mut files: HashMap<MappedInode, (&FileMapping, Range<u64>, bool)> = HashMap::new();
    for map in &all {
        let (_, range, has_code) = files
            .entry(map.mapped_inode())
            .or_insert_with(|| (map, map.range.clone(), false));
        range.end = map.range.end;
        *has_code |= map.permissions[2];
    }
    let has_moved = |range: &Range<u64>| {
        let first = code.partition_point(|start| *start < range.start);
        code.get(first).is_some_and(|start| *start < range.end)
    };
    let moved = files.into_values();
    let moved = moved.filter(|(_, range, has_code)| !has_code && has_moved(range));
    moved.map(|(map, ..)| map.clone()).collect()
}

/// A mapping of no file at addresses of a process, without a name.
fn mapped(pid: i32, range: &Range<u64>) -> Mmap<'static> {
    Mmap {
        pid,
        tid: pid,
        start: range.start,
        len: range.end.saturating_sub(range.start),
        offset: 0,
        file: MmapFile::Inode {
            major: 0,
            minor: 0,
            inode: 0,
            generation: 0,
        },
        protection: 0,
        flags: libc::MAP_PRIVATE as u32,
        cpu_mode: Mmap::USER,
        path: &[],
        id: SampleId {
            pid,
            tid: pid,
            ..SampleId::default()
        },
    }
}

/// `PROT_*` of a mapping.
fn protection(permissions: [bool; 3]) -> u32 {
    let bits = [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC];
    let set = permissions.iter().zip(bits).filter(|(has, _)| **has);
    set.fold(0, |all, (_, bit)| all | bit as u32)
}

//! What a trace tells of its processes, as read: names, forks and mappings, not yet put in order.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_format::BuildId;
use usdtrec_format::perf::{Comm, Mmap, MmapFile, RawRecord, RecordType, SampleType, Task};

/// The process that the kernel's own mappings are noted for, as perf has it.
pub(super) const KERNEL: i32 = -1;

/// Bytes of memory that a log may take. Compressed records of processes can be thousands of times as long as their file.
const MOST_MEMORY: usize = 1 << 30;

/// Changes of processes in the order of the file.
#[derive(Debug, Default)]
pub struct ProcessLog {
    pub(super) entries: Vec<Entry>,
    /// Bytes of memory that they take.
    memory: usize,
    left_out: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// ns; 0 for what ran before the recording began.
    pub(super) time: u64,
    pub(super) change: Change,
}

#[derive(Debug)]
pub(super) enum Change {
    /// A thread got a name.
    Named {
        pid: i32,
        tid: i32,
        exec: bool,
        name: Box<[u8]>,
    },
    /// A thread began.
    Forked {
        pid: i32,
        tid: i32,
        parent_pid: i32,
        parent_tid: i32,
        /// Whether a new process has its parent's mappings.
        inherits: bool,
    },
    /// A thread ended.
    Ended { tid: i32 },
    /// A process mapped a file.
    Mapped {
        pid: i32,
        range: FileRange,
        path: PathBuf,
        build_id: Option<BuildId>,
    },
}

/// A run of addresses that shows a run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRange {
    /// First address.
    pub(super) start: u64,
    /// Address behind the last.
    pub(super) end: u64,
    /// File offset of the first address.
    pub(super) offset: u64,
}

impl ProcessLog {
    /// Takes a record, if it is one that tells of processes; others are passed over.
    ///
    /// `sample_type` is [`Attr::id_type`](usdtrec_format::perf::Attr::id_type). `None` if the record should
    /// be one of these and is too short.
    pub fn record(&mut self, record: &RawRecord<'_>, sample_type: SampleType) -> Option<()> {
        let entry = match record.kind {
            RecordType::COMM => named(&Comm::parse(record, sample_type)?),
            RecordType::FORK => forked(&Task::parse_fork(record, sample_type)?),
            RecordType::MMAP | RecordType::MMAP2 => {
                let map = Mmap::parse(record, sample_type)?;
                match map.cpu_mode {
                    Mmap::USER => mapped(&map, map.pid, map.path),
                    Mmap::KERNEL => mapped(&map, KERNEL, kernel_name(map.path)),
                    _ => return Some(()),
                }
            }
            _ => return Some(()),
        };
        self.push(entry);
        Some(())
    }

    fn push(&mut self, entry: Entry) {
        let memory = entry.memory();
        if self.has_room(memory, 1) {
            self.memory += memory;
            self.entries.push(entry);
        }
    }

    /// As [`record`](Self::record), with the ends of threads, which matter only where something is to be forgotten.
    pub(crate) fn record_of_stream(
        &mut self,
        record: &RawRecord<'_>,
        sample_type: SampleType,
    ) -> Option<()> {
        if record.kind != RecordType::EXIT {
            return self.record(record, sample_type);
        }
        let task = Task::parse_exit(record, sample_type)?;
        self.push(Entry {
            time: task.id.time.max(task.time),
            change: Change::Ended { tid: task.tid },
        });
        Some(())
    }

    /// Puts the changes of another log behind those of this one.
    pub fn append(&mut self, mut other: Self) {
        self.left_out += other.left_out;
        if self.has_room(other.memory, other.entries.len() as u64) {
            self.memory += other.memory;
            self.entries.append(&mut other.entries);
        }
    }

    /// Whether so much more fits, which is `changes` changes.
    const fn has_room(&mut self, memory: usize, changes: u64) -> bool {
        let fits = self.memory + memory <= MOST_MEMORY;
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

impl Entry {
    fn memory(&self) -> usize {
        /// What an allocation costs besides its bytes.
        const ALLOCATION: usize = 16;
        let text = match &self.change {
            Change::Named { name, .. } => name.len(),
            Change::Forked { .. } | Change::Ended { .. } => return size_of::<Self>(),
            Change::Mapped { path, .. } => path.as_os_str().len(),
        };
        size_of::<Self>() + ALLOCATION + text
    }
}

fn named(comm: &Comm<'_>) -> Entry {
    Entry {
        time: comm.id.time,
        change: Change::Named {
            pid: comm.pid,
            tid: comm.tid,
            exec: comm.exec,
            name: comm.name.into(),
        },
    }
}

fn forked(task: &Task) -> Entry {
    Entry {
        // The record's own time is that of the recorder for those made up; the trailer's is 0 there.
        time: if task.already_ran {
            0
        } else {
            task.id.time.max(task.time)
        },
        change: Change::Forked {
            pid: task.pid,
            tid: task.tid,
            parent_pid: task.parent_pid,
            parent_tid: task.parent_tid,
            inherits: !task.already_ran,
        },
    }
}

fn mapped(map: &Mmap<'_>, pid: i32, path: &[u8]) -> Entry {
    Entry {
        time: map.id.time,
        change: Change::Mapped {
            pid,
            range: FileRange {
                start: map.start,
                end: map.start.saturating_add(map.len),
                offset: map.offset,
            },
            path: Path::new(OsStr::from_bytes(path)).to_owned(),
            build_id: match map.file {
                MmapFile::BuildId(id) => Some(id),
                _ => None,
            },
        },
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

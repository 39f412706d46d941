//! What a trace tells of its processes, as read: names, forks and mappings, not yet put in order.

use usdtrec_format::perf::{Comm, Mmap, MmapFile, RawRecord, RecordType, SampleType, Task};

use super::texts::{Text, Texts};

/// The process that the kernel's own mappings are noted for, as perf has it.
pub(super) const KERNEL: i32 = -1;

/// Bytes of memory that a log may take. Compressed records of processes can be thousands of times as long as their file.
const MOST_MEMORY: usize = 1 << 30;

/// Changes of processes in the order of the file.
#[derive(Debug, Default)]
pub struct ProcessLog {
    pub(super) entries: Vec<Entry<Text>>,
    pub(super) texts: Texts,
    /// Bytes of memory that both take.
    memory: usize,
    left_out: u64,
}

/// A change and its time. `T` is a name, a path or the bytes of a build-id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    /// ns; 0 for what ran before the recording began.
    pub(super) time: u64,
    pub(super) change: Change<T>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Change<T> {
    /// A thread got a name.
    Named {
        pid: i32,
        tid: i32,
        exec: bool,
        name: T,
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
        path: T,
        build_id: Option<T>,
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
        match record.kind {
            RecordType::COMM => self.push(named(&Comm::parse(record, sample_type)?)),
            RecordType::FORK => self.push(forked(&Task::parse_fork(record, sample_type)?)),
            RecordType::MMAP | RecordType::MMAP2 => {
                let map = Mmap::parse(record, sample_type)?;
                match map.cpu_mode {
                    Mmap::USER => self.push(mapped(&map, map.pid, map.path)),
                    Mmap::KERNEL => self.push(mapped(&map, KERNEL, kernel_name(map.path))),
                    _ => {}
                }
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn push(&mut self, entry: Entry<&[u8]>) {
        if !self.has_room(size_of::<Entry<Text>>(), 1) {
            return;
        }
        self.memory += size_of::<Entry<Text>>();
        let change = entry.change.map(|bytes| {
            let (text, memory) = self.texts.intern(bytes);
            self.memory += memory;
            text
        });
        let time = entry.time;
        self.entries.push(Entry { time, change });
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
    pub fn append(&mut self, other: Self) {
        if self.entries.is_empty() && self.left_out == 0 {
            *self = other;
            return;
        }
        self.left_out += other.left_out;
        if self.has_room(other.memory, other.entries.len() as u64) {
            let (texts, memory) = self.texts.intern_all(&other.texts);
            self.memory += memory + size_of_val(&*other.entries);
            self.entries.extend(other.entries.iter().map(|entry| Entry {
                time: entry.time,
                change: entry.change.map(|text| texts.get(text)),
            }));
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

impl<T> Change<T> {
    /// The same with each text replaced.
    fn map<U>(self, mut text: impl FnMut(T) -> U) -> Change<U> {
        match self {
            Self::Named {
                pid,
                tid,
                exec,
                name,
            } => Change::Named {
                pid,
                tid,
                exec,
                name: text(name),
            },
            Self::Forked {
                pid,
                tid,
                parent_pid,
                parent_tid,
                inherits,
            } => Change::Forked {
                pid,
                tid,
                parent_pid,
                parent_tid,
                inherits,
            },
            Self::Ended { tid } => Change::Ended { tid },
            Self::Mapped {
                pid,
                range,
                path,
                build_id,
            } => Change::Mapped {
                pid,
                range,
                path: text(path),
                build_id: build_id.map(text),
            },
        }
    }
}

fn named<'a>(comm: &Comm<'a>) -> Entry<&'a [u8]> {
    Entry {
        time: comm.id.time,
        change: Change::Named {
            pid: comm.pid,
            tid: comm.tid,
            exec: comm.exec,
            name: comm.name,
        },
    }
}

fn forked(task: &Task) -> Entry<&'static [u8]> {
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

fn mapped<'a>(map: &'a Mmap<'_>, pid: i32, path: &'a [u8]) -> Entry<&'a [u8]> {
    Entry {
        time: map.id.time,
        change: Change::Mapped {
            pid,
            range: FileRange {
                start: map.start,
                end: map.start.saturating_add(map.len),
                offset: map.offset,
            },
            path,
            build_id: match &map.file {
                MmapFile::BuildId(id) => Some(id.as_bytes()),
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

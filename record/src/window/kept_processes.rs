//! What is kept of records that fell out of a window: the processes of its begin, and what the recorder said of all hits.
//!
//! A file begins with it, as one begins with the processes that ran already when recording began. What a process was at the time of a hit in the
//! window is what its records up to then say. Memory is bounded: what exceeds a limit is not in the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use usdtrec_format::perf::{RawRecord, Records, SampleType};
use usdtrec_format::trace::{Pause, ProcessCgroup, Shortfall, StringArgument};
use usdtrec_watch::process_table::ProcessTable;

/// Maximum length of what the recorder said, bytes.
const MAX_BYTES: usize = 4 << 20;

/// What is known at the time of the first hits of a window.
#[derive(Debug)]
pub(super) struct KeptProcesses {
    id_type: SampleType,
    table: ProcessTable,
    /// What the recorder said of all hits, by its meaning, oldest first.
    notes: BTreeMap<NoteKey, Arc<[u8]>>,
    /// Length of the notes, bytes.
    note_bytes: usize,
}

/// What a record of the recorder's own is about: a later one of the same replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NoteKey {
    Shortfall(u32),
    String(u64, u32, Option<u64>),
    Pause(u64),
}

impl KeptProcesses {
    /// `id_type` is the layout of the sample ids of the records.
    pub(super) fn new(id_type: SampleType) -> Self {
        Self {
            id_type,
            table: ProcessTable::new(id_type, true),
            notes: BTreeMap::new(),
            note_bytes: 0,
        }
    }

    /// Takes records that fell out of the window, after all that did before.
    pub(super) fn take(&mut self, records: &[u8]) {
        let mut walk = Records::new(records);
        let mut start = 0;
        while let Some(record) = walk.next() {
            let bytes = records.get(start..walk.offset()).unwrap_or_default();
            start = walk.offset();
            if self.table.take(&record).is_none() {
                self.note(&record, bytes);
            }
        }
        // Hits before it have fallen out.
        self.table.forget_before(u64::MAX);
    }

    /// Keeps what the recorder says of processes and of all hits.
    fn note(&mut self, record: &RawRecord<'_>, bytes: &[u8]) {
        if let Some(cgroup) = ProcessCgroup::parse(record, self.id_type) {
            return self.table.note(cgroup.pid, cgroup.id.time, bytes);
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
            self.notes.insert(key, bytes.into());
        }
    }

    /// A copy to be [written](Self::write): it takes no more records.
    pub(super) fn copy(&self) -> Self {
        Self {
            id_type: self.id_type,
            table: self.table.copy(),
            notes: self.notes.clone(),
            note_bytes: self.note_bytes,
        }
    }

    /// Passes the records that say all this to `sink`, those of a process at a time.
    pub(super) fn write(&self, mut sink: impl FnMut(&[u8])) {
        self.table.write(&mut sink);
        self.notes.values().for_each(|bytes| sink(bytes));
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{Comm, Mmap, MmapFile, SampleId, Task};

    use super::*;

    const IDS: SampleType = SampleType(
        SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0 | SampleType::IDENTIFIER.0,
    );

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

    /// The state of the records.
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
            .exit(8, [10, 12]);
        let kept = settled(made);
        assert_eq!(
            said(&kept),
            ["fork 11/11", "name 11/11 parent", "map 11 0x1000 /bin/app"]
        );
    }

    #[test]
    fn a_program_begins_without_what_the_one_before_it_had() {
        let made = Made::default()
            .comm(1, [10, 10], "sh", false)
            .map(2, 10, 0x1000, "/bin/sh")
            .comm(3, [10, 10], "app", true)
            .map(4, 10, 0x1000, "/bin/app")
            .map(5, 10, 0x5000, "/lib/first.so")
            .map(6, 10, 0x5000, "/lib/second.so");
        let kept = settled(made);
        assert_eq!(
            said(&kept),
            [
                "fork 10/10",
                "name 10/10 app",
                "map 10 0x1000 /bin/app",
                "map 10 0x5000 /lib/second.so"
            ]
        );
    }
}

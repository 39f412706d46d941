//! Records that say what is known of processes already: another file begins with them.

use std::ops::Range;

use usdtrec_format::perf::{Comm, Mmap, SampleId, SampleType, Task};

use super::{KnownProcess, ProcessMapping, ProcessTable};

/// A thread that ran before the records begin.
#[derive(Clone, Copy, Debug)]
pub struct KnownThread<'a> {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The process that started it.
    pub parent: i32,
    /// `None` if it is not known.
    pub name: Option<&'a [u8]>,
}

impl KnownThread<'_> {
    /// Appends the records, which have no time.
    pub fn encode(self, id_type: SampleType, out: &mut Vec<u8>) {
        let Self {
            pid,
            tid,
            parent,
            name,
        } = self;
        let id = SampleId {
            pid,
            tid,
            ..SampleId::default()
        };
        let fork = Task {
            pid,
            parent_pid: parent,
            tid,
            parent_tid: parent,
            time: 0,
            already_ran: true,
            id,
        };
        fork.encode_fork(id_type, out);
        if let Some(name) = name {
            Comm {
                pid,
                tid,
                exec: false,
                name,
                id,
            }
            .encode(id_type, out);
        }
    }
}

impl ProcessTable {
    /// A copy of the processes that live, to be [written](Self::write). It holds no file that no process maps.
    #[must_use]
    pub fn copy(&self) -> Self {
        let living = self.processes.iter();
        let living = living.filter(|(_, process)| process.ended.is_none());
        Self {
            processes: living
                .map(|(pid, process)| (*pid, process.clone()))
                .collect(),
            ..Self::new(self.id_type, self.has_mappings)
        }
    }

    /// Passes the records that say what is known of the processes that live to `sink`, those of a process at a time.
    pub fn write(&self, mut sink: impl FnMut(&[u8])) {
        let mut living: Vec<(i32, &KnownProcess)> = self
            .processes
            .iter()
            .filter(|(_, process)| process.ended.is_none())
            .map(|(pid, process)| (*pid, process))
            .collect();
        living.sort_by_key(|(pid, _)| *pid);
        let mut out = Vec::new();
        for (pid, process) in living {
            out.clear();
            process.put_threads(pid, self.id_type, &mut out);
            for mapping in process.space.mappings() {
                mapping.put(pid, self.id_type, &mut out);
            }
            out.extend_from_slice(process.note.as_deref().unwrap_or_default());
            sink(&out);
        }
    }

    /// The same records.
    #[must_use]
    pub fn records(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.write(|records| all.extend_from_slice(records));
        all
    }
}

impl KnownProcess {
    fn put_threads(&self, pid: i32, id_type: SampleType, out: &mut Vec<u8>) {
        // The process comes before its threads, also if its first one has ended.
        let first = self.threads.get(&pid).cloned().unwrap_or_default();
        let others = self.threads.iter().filter(|(tid, _)| **tid != pid);
        let threads = std::iter::once((&pid, &first)).chain(others);
        for (&tid, name) in threads {
            let thread = KnownThread {
                pid,
                tid,
                parent: if tid == pid { self.parent } else { pid },
                name: Some(&**name).filter(|name| !name.is_empty()),
            };
            thread.encode(id_type, out);
        }
    }
}

impl ProcessMapping {
    fn put(&self, pid: i32, id_type: SampleType, out: &mut Vec<u8>) {
        let Range { start, end } = self.range;
        let map = Mmap {
            pid,
            tid: pid,
            start,
            len: end - start,
            offset: self.offset,
            file: self.file.identity,
            protection: self.protection,
            flags: self.flags,
            cpu_mode: Mmap::USER,
            path: &self.file.path,
            id: SampleId {
                pid,
                tid: pid,
                ..SampleId::default()
            },
        };
        map.encode(id_type, out);
    }
}

//! What process records say of programs that make code.

use usdtrec_format::perf::{Comm, Mmap, RawRecord, RecordType, SampleType, Task};

/// A change of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// ns.
    pub(super) time: u64,
    pub(super) pid: i32,
    pub(super) change: Change,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// It may execute memory that is that of no file.
    Makes,
    Executed,
    Forked(Task),
    /// A thread ended.
    Exited,
}

impl Event {
    /// `None` of records that change nothing.
    pub(super) fn of(record: &RawRecord<'_>, id_type: SampleType) -> Option<Self> {
        let (pid, time, change) = match record.kind {
            RecordType::MMAP2 => {
                let map = Mmap::parse(record, id_type)?;
                let makes = map.cpu_mode == Mmap::USER && Mmap::is_memory(map.path);
                makes.then_some((map.pid, map.id.time, Change::Makes))?
            }
            RecordType::COMM => {
                let comm = Comm::parse(record, id_type)?;
                let executed = (comm.pid, comm.id.time, Change::Executed);
                comm.exec.then_some(executed)?
            }
            RecordType::FORK => {
                let task = Task::parse_fork(record, id_type)?;
                (task.pid, task.id.time, Change::Forked(task))
            }
            RecordType::EXIT => {
                let task = Task::parse_exit(record, id_type)?;
                (task.pid, task.id.time, Change::Exited)
            }
            _ => return None,
        };
        Some(Self { time, pid, change })
    }
}

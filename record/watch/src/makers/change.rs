//! What process records say of programs that make code.

use usdtrec_format::perf::{Comm, Mmap, RawRecord, RecordType, SampleType, Task};

use super::jit_dump::DumpMapping;

/// A change of a process.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// ns.
    pub(super) time: u64,
    pub(super) pid: i32,
    pub(super) change: Change,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It may execute memory that is that of no file.
    Makes,
    /// It mapped a jitdump.
    Dumps(Box<DumpMapping>),
    Executed,
    Forked(Task),
    /// A thread ended.
    Exited,
}

impl Event {
    /// `None` of records that change nothing.
    pub(super) fn from_record(record: &RawRecord<'_>, id_type: SampleType) -> Option<Self> {
        let (pid, time, change) = match record.kind {
            RecordType::MMAP2 => {
                let map = Mmap::parse(record, id_type)?;
                if map.cpu_mode != Mmap::USER {
                    return None;
                }
                let change = match DumpMapping::from_mmap(&map) {
                    Some(dump) => Change::Dumps(Box::new(dump)),
                    None => map.is_for_code().then_some(Change::Makes)?,
                };
                (map.pid, map.id.time, change)
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

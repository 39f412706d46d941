//! What process records say, read in one place for the recorder and for readers of traces: FORK, COMM, MMAP, MMAP2 and EXIT.
//!
//! * **Identity.** A process is its pid and the time of the FORK that began it, 0 if it ran before. Threads belong to it, also when the first one has
//!   ended: it ends with the last one. An `execve(2)` begins another program of the same process.
//! * **Order.** Records count in the order of their times. Those of the CPUs' rings are brought into it by [`RecordOrder`].
//! * **A pid that is used again.** A FORK that begins a process ends what is known of an earlier one with that pid, whether or not its end was seen.
//! * **Made-up records.** What ran before has records without a time, which hold from the start. Its FORK says so: it inherits nothing.

use super::{Comm, Mmap, RawRecord, RecordType, SampleId, SampleType, SplitBody, Task};

/// A change of a process, by one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessChange<'a> {
    /// ns of the trace's clock; 0 for what was so before the records begin.
    pub time: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// What happened.
    pub kind: ProcessChangeKind<'a>,
}

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessChangeKind<'a> {
    /// A thread began, with the name of the thread that created it.
    ThreadBegan {
        /// The thread that created it, of the same process.
        parent_tid: i32,
    },
    /// The process began, with the name of the thread that created it.
    ProcessBegan {
        /// The process that created it.
        parent_pid: i32,
        /// The thread of it.
        parent_tid: i32,
        /// Whether it ran before the records begin: it does not begin with its parent's mappings.
        ran_already: bool,
    },
    /// The thread has another name.
    Named {
        /// The name, without NUL.
        name: &'a [u8],
        /// Whether it has it because it executes another program, without the former mappings and other threads.
        executes: bool,
    },
    /// Part of a file is mapped, or memory.
    Mapped(Mmap<'a>),
    /// The thread ended.
    ThreadEnded {
        /// Whether the process ended with it. A record does not say that: it is what is known of the others.
        is_last: bool,
    },
}

impl<'a> ProcessChange<'a> {
    /// Whether a record is one of these by its type.
    #[must_use]
    pub const fn is(record: &RawRecord<'_>) -> bool {
        matches!(
            record.kind,
            RecordType::FORK
                | RecordType::COMM
                | RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::EXIT
        )
    }

    /// Parses a record; `None` if it is another one or too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        match record.kind {
            RecordType::FORK => {
                let task = Task::parse_fork(record, sample_type)?;
                let parent_tid = task.parent_tid;
                let kind = match task.pid == task.parent_pid {
                    true => ProcessChangeKind::ThreadBegan { parent_tid },
                    false => ProcessChangeKind::ProcessBegan {
                        parent_pid: task.parent_pid,
                        parent_tid,
                        ran_already: task.already_ran,
                    },
                };
                Some(Self::of_task(&task, kind))
            }
            RecordType::EXIT => {
                let task = Task::parse_exit(record, sample_type)?;
                let kind = ProcessChangeKind::ThreadEnded { is_last: false };
                Some(Self::of_task(&task, kind))
            }
            RecordType::COMM => {
                let comm = Comm::parse(record, sample_type)?;
                Some(Self {
                    time: comm.id.time,
                    pid: comm.pid,
                    tid: comm.tid,
                    kind: ProcessChangeKind::Named {
                        name: comm.name,
                        executes: comm.exec,
                    },
                })
            }
            _ => {
                let map = Mmap::parse(record, sample_type)?;
                Some(Self {
                    time: map.id.time,
                    pid: map.pid,
                    tid: map.tid,
                    kind: ProcessChangeKind::Mapped(map),
                })
            }
        }
    }

    /// As [`parse`](Self::parse), of a record in a ring of the kernel. Another tracer's events make the kernel set the flag "has a build-id" in
    /// records of mappings that have none.
    #[must_use]
    pub fn parse_in_ring(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        let record = RawRecord {
            misc: record.misc & !Mmap::BUILD_ID,
            ..*record
        };
        Self::parse(&record, sample_type)
    }

    const fn of_task(task: &Task, kind: ProcessChangeKind<'a>) -> Self {
        // A made-up record has the time of its recorder in its own field.
        let time = match task.already_ran {
            true => 0,
            false if task.id.time > task.time => task.id.time,
            false => task.time,
        };
        Self {
            time,
            pid: task.pid,
            tid: task.tid,
            kind,
        }
    }

    /// Whether the process executes another program from then on.
    #[must_use]
    pub const fn executes(&self) -> bool {
        matches!(self.kind, ProcessChangeKind::Named { executes: true, .. })
    }

    /// The mapping in user space that it is.
    #[must_use]
    pub const fn mapped(&self) -> Option<&Mmap<'a>> {
        match &self.kind {
            ProcessChangeKind::Mapped(map) if map.cpu_mode == Mmap::USER => Some(map),
            _ => None,
        }
    }
}

/// Brings the records of several rings into the order of time.
///
/// A pass reads one ring after the other. What led to a record of one ring may have been written to another one after that was read. So records that
/// are later than the begin of the pass wait for the next one, which has all that is earlier.
#[derive(Debug, Default)]
pub struct RecordOrder {
    waiting: Vec<u8>,
}

impl RecordOrder {
    /// The records up to a time, of those that a pass has read and of those that waited. Records of one time stay in the order in which they were
    /// read. `began` is when the pass began, ns of the trace's clock; `u64::MAX` if no other one follows.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn pass(&mut self, read: &[u8], began: u64, sample_type: SampleType) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.waiting);
        all.extend_from_slice(read);
        let mut walk = super::Records::new(&all);
        let mut records = Vec::new();
        let mut start = 0;
        while let Some(record) = walk.next() {
            let body = SampleId::split(record.body, sample_type);
            let time = body.map_or(0, |SplitBody { id, .. }| id.time);
            records.push((time, start..walk.offset()));
            start = walk.offset();
        }
        if records.is_sorted_by_key(|(time, _)| *time)
            && records.last().is_none_or(|(time, _)| *time <= began)
        {
            return all;
        }
        records.sort_by_key(|(time, _)| *time);
        let mut ready = Vec::with_capacity(all.len());
        for (time, record) in records {
            let bytes = all.get(record).unwrap_or_default();
            let out = if time <= began {
                &mut ready
            } else {
                &mut self.waiting
            };
            out.extend_from_slice(bytes);
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Records;

    const IDS: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);

    fn named(time: u64, name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let id = SampleId {
            time,
            ..SampleId::default()
        };
        Comm {
            pid: 7,
            tid: 7,
            exec: false,
            name: name.as_bytes(),
            id,
        }
        .encode(IDS, &mut out);
        out
    }

    fn times(records: &[u8]) -> Vec<u64> {
        let changes = Records::new(records).filter_map(|record| ProcessChange::parse(&record, IDS));
        changes.map(|change| change.time).collect()
    }

    #[test]
    fn a_record_waits_for_the_earlier_ones_of_other_rings() {
        let mut order = RecordOrder::default();
        let first = [
            named(0, "ran"),
            named(20, "b"),
            named(35, "d"),
            named(10, "a"),
        ]
        .concat();
        assert_eq!(times(&order.pass(&first, 30, IDS)), [0, 10, 20]);
        // What ring was read before has one that is earlier than what waits.
        let second = [named(40, "e"), named(31, "c")].concat();
        assert_eq!(times(&order.pass(&second, 50, IDS)), [31, 35, 40]);
        assert!(order.pass(&[], 60, IDS).is_empty());
        assert!(order.pass(&named(90, "f"), 70, IDS).is_empty());
        assert_eq!(times(&order.pass(&[], u64::MAX, IDS)), [90]);
    }

    #[test]
    fn tasks_begin_and_end_threads_and_processes() {
        let id = SampleId {
            time: 9,
            ..SampleId::default()
        };
        let thread = Task {
            pid: 7,
            parent_pid: 7,
            tid: 8,
            parent_tid: 7,
            time: 8,
            already_ran: false,
            id,
        };
        let process = Task {
            parent_pid: 1,
            parent_tid: 2,
            tid: 7,
            ..thread
        };
        let ran = Task {
            already_ran: true,
            ..process
        };
        let mut records = Vec::new();
        thread.encode_fork(IDS, &mut records);
        process.encode_fork(IDS, &mut records);
        ran.encode_fork(IDS, &mut records);
        thread.encode_exit(IDS, &mut records);
        let changes = Records::new(&records).map(|record| {
            assert!(ProcessChange::is(&record));
            ProcessChange::parse(&record, IDS).expect("a change")
        });
        let began = |ran_already| ProcessChangeKind::ProcessBegan {
            parent_pid: 1,
            parent_tid: 2,
            ran_already,
        };
        let expected = [
            (9, 8, ProcessChangeKind::ThreadBegan { parent_tid: 7 }),
            (9, 7, began(false)),
            (0, 7, began(true)),
            (9, 8, ProcessChangeKind::ThreadEnded { is_last: false }),
        ];
        let expected = expected.map(|(time, tid, kind)| ProcessChange {
            time,
            pid: 7,
            tid,
            kind,
        });
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }
}

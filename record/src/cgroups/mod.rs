//! The control groups of processes with hits, and so their containers and services.
//!
//! A process gets its control group before it executes its program, from its parent or from who starts it. So it is read once, after the first
//! hit: in a thread, because the kernel shows it under a lock of all control groups (`cgroup_mutex`) that may be held for long.
//!
//! The path is read, because the kernel's id of a control group (`bpf_get_current_cgroup_id`) is of cgroup v2 only and
//! is no path. A pass waits at most 5 ms for it, so that streams have the record before the hits of the next pass. The
//! start time of the process is compared with the time of the hit, so a later process with the same pid is not taken
//! for it.

mod of_process;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_format::perf::{Comm, RecordType, SampleId, SampleType, Task};
use usdtrec_format::trace::ProcessCgroup;

use crate::batch::{Batch, Record, RecordBuffer, SampleHead};
use crate::stage::Stage;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "cgroups";
/// Maximum number of processes that wait to be read, and of those that are noted as read.
const MAX_PROCESSES: usize = 1 << 16;
/// How long a pass waits for the control groups of new processes: readers of a pipe need them before the hits.
const PASS_LIMIT: Duration = Duration::from_millis(5);
/// How long the end of the recording waits.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Reads the control groups of processes with hits.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// `sample_type` of the process records' sample ids.
    id_type: SampleType,
    /// `None` if there is no thread.
    reader: Option<Reader>,
    /// Processes that were asked for since they began.
    asked: HashSet<i32>,
    /// Processes of which the file has a record: a later process of the same id must not be taken for one of these.
    written: HashSet<i32>,
    /// The first hits in this pass of processes that were not asked for.
    new: HashMap<i32, u64>,
    /// Process of a sample that was asked for: the next samples are likely to be of the same. 0 if none is.
    known: i32,
    out: RecordBuffer,
}

/// The thread that reads.
#[derive(Debug)]
struct Reader {
    hits: Sender<FirstHit>,
    answers: Receiver<Answer>,
    /// Number of answers that are missing.
    missing: usize,
}

/// The first hit of a process.
#[derive(Clone, Copy, Debug)]
struct FirstHit {
    pid: i32,
    /// ns.
    time: u64,
}

#[derive(Debug)]
struct Answer {
    hit: FirstHit,
    /// `None` if it could not be read.
    path: Option<Vec<u8>>,
}

impl Cgroups {
    pub(crate) fn new(id_type: SampleType) -> Self {
        Self {
            id_type,
            reader: Reader::start(),
            asked: HashSet::new(),
            written: HashSet::new(),
            new: HashMap::new(),
            known: 0,
            out: RecordBuffer::default(),
        }
    }

    fn take_sample(&mut self, sample: SampleHead) {
        let SampleHead { pid, time, .. } = sample;
        if pid == self.known {
            return;
        }
        if self.asked.contains(&pid) {
            self.known = pid;
            return;
        }
        if pid <= 0 {
            return;
        }
        if self.new.len() < MAX_PROCESSES {
            // Records of several CPUs are not in the order of time.
            let first = self.new.entry(pid).or_insert(time);
            *first = (*first).min(time);
        }
    }

    /// Processes with first hits in this pass.
    pub(crate) fn new_processes(&self) -> impl Iterator<Item = i32> {
        self.new.keys().copied()
    }

    /// The process that a record begins: it has no control group that is known, and gets another one before it executes a program.
    fn begun(&self, record: Record<'_>) -> Option<i32> {
        match record.kind() {
            RecordType::COMM => {
                let comm = Comm::parse(&record.raw(), self.id_type)?;
                comm.exec.then_some(comm.pid)
            }
            RecordType::FORK => {
                let task = Task::parse_fork(&record.raw(), self.id_type)?;
                (task.pid != task.parent_pid).then_some(task.pid)
            }
            _ => None,
        }
    }

    /// The records of what was read, until none is missing or `patience` is over.
    fn read(&mut self, patience: Duration) -> Option<Batch<'_>> {
        let reader = self.reader.as_mut()?;
        let deadline = Instant::now() + patience;
        self.out.clear();
        while let Some(Answer { hit, path }) = reader.answer(deadline) {
            let is_known = path.is_some();
            if !is_known && !self.written.contains(&hit.pid) && self.written.len() < MAX_PROCESSES {
                continue;
            }
            let id = SampleId {
                pid: hit.pid,
                tid: hit.pid,
                time: hit.time,
                ..SampleId::default()
            };
            let cgroup = ProcessCgroup {
                pid: hit.pid,
                path: path.as_deref().unwrap_or_default(),
                id,
            };
            self.out.write(|bytes| cgroup.encode(self.id_type, bytes));
            if self.written.len() < MAX_PROCESSES {
                self.written.insert(hit.pid);
            }
        }
        Some(self.out.batch())
    }
}

impl Stage for Cgroups {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for record in batch.records() {
            if let Some(sample) = record.sample() {
                self.take_sample(sample);
            } else if let Some(pid) = self.begun(record) {
                self.asked.remove(&pid);
                self.known = 0;
            }
        }
        batch
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        if self.asked.len() > MAX_PROCESSES {
            self.asked.clear();
        }
        for (pid, time) in self.new.drain() {
            self.asked.insert(pid);
            if let Some(reader) = &mut self.reader {
                reader.ask(FirstHit { pid, time });
            }
        }
        self.known = 0;
        self.read(PASS_LIMIT)
    }

    fn end_recording(&mut self) -> Option<Batch<'_>> {
        self.read(LAST_PATIENCE)
    }

    /// A file must have the records of all processes.
    fn begin_file(&mut self) {
        self.asked.clear();
        self.written.clear();
        self.known = 0;
    }
}

impl Reader {
    /// Starts the thread; `None` if that is impossible.
    fn start() -> Option<Self> {
        let (hits, asked) = channel::<FirstHit>();
        let (answer, answers) = channel();
        let read = move || {
            // It ends with the recording.
            for hit in asked {
                let path = of_process::path(hit.pid, hit.time);
                if answer.send(Answer { hit, path }).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(read);
        thread.ok().map(|_| Self {
            hits,
            answers,
            missing: 0,
        })
    }

    /// Asks for a process, unless very many are asked for.
    fn ask(&mut self, hit: FirstHit) {
        if self.missing < MAX_PROCESSES && self.hits.send(hit).is_ok() {
            self.missing += 1;
        }
    }

    /// The next answer until `deadline`; `None` if none is missing or none comes.
    fn answer(&mut self, deadline: Instant) -> Option<Answer> {
        if self.missing == 0 {
            return None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = self.answers.recv_timeout(left).ok()?;
        self.missing -= 1;
        Some(answer)
    }
}

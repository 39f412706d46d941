//! The control groups of processes with hits, and so their containers and units; the programs that they execute, their parents and services.
//!
//! A process gets its control group before it executes its program, from its parent or from who starts it. So it is read once, after the first
//! hit: in a thread, because the kernel shows it under a lock of all control groups (`cgroup_mutex`) that may be held for long.
//!
//! The path is read, because the kernel's id of a control group (`bpf_get_current_cgroup_id`) is of cgroup v2 only and
//! is no path. A pass waits at most 5 ms for it, so that streams have the record before the hits of the next pass. The
//! start time of the process is compared with the time of the hit, so a later process with the same pid is not taken
//! for it. A process that executes another program between its hit and the reading is asked for again at its next hit, and the program of the
//! first one is not known.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::percent_decode;
use rustix::time::{ClockId, clock_gettime};
use usdtrec_buildid_cache::served::ProcessFile;
use usdtrec_format::control_group::path_of_process;
use usdtrec_format::perf::{ProcessChange, ProcessChangeKind, SampleId, SampleType};
use usdtrec_format::trace::ProcessCgroup;
use usdtrec_kernel::host::process::{EXITING, Process, live_directory};
use usdtrec_kernel::trace_clock::{self, nanoseconds};

use crate::batch::{Batch, RecordBuffer, SampleHead};
use crate::limits::MAX_READ_PROCESSES;
use crate::stage::Stage;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "cgroups";
/// How long a pass waits for the control groups of new processes: readers of a pipe need them before the hits.
const PASS_LIMIT: Duration = Duration::from_millis(5);
/// How much later than `/proc/PID/exe` has a new program the kernel may note its beginning, ns.
const NOTED_LATER: u64 = 1_000_000;
/// Maximum length of the name of a service.
const MAX_SERVICE_BYTES: usize = 255;
/// How long the end of the recording waits.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the control groups of processes with hits.
#[derive(Debug)]
pub struct Cgroups {
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
    /// When processes that were asked for last executed another program, ns: an answer that is read later may be of that.
    executed: HashMap<i32, u64>,
    /// The answers of the last pass whose program is known.
    answered: Vec<Answer>,
    /// Process of a sample that was asked for: the next samples are likely to be of the same. 0 if none is.
    known: i32,
    /// Records to be added at the end of the pass, and those that were added at the last one.
    out: RecordBuffer,
    passed: RecordBuffer,
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
    /// `None` if they could not be read.
    paths: Option<ProcessPaths>,
}

impl Answer {
    /// Whether its program may be one that the process executed after the hit, at this time.
    fn is_of_later(&self, executed: u64) -> bool {
        let read = self.paths.as_ref().filter(|paths| !paths.exe.is_empty());
        let until = read.map_or(0, |paths| paths.read_at.saturating_add(NOTED_LATER));
        (self.hit.time..=until).contains(&executed)
    }

    /// The record; its program is not known if a process may have executed another one.
    fn record(&self, has_program: bool) -> ProcessCgroup<'_> {
        let FirstHit { pid, time } = self.hit;
        let paths = self.paths.as_ref();
        let of_program = paths.filter(|_| has_program);
        ProcessCgroup {
            pid,
            path: paths.map_or(&[], |paths| &paths.cgroup),
            exe: of_program.map_or(&[], |paths| &paths.exe),
            parent: paths.map_or(0, |paths| paths.parent),
            parent_name: paths.map_or(&[], |paths| &paths.parent_name),
            service: of_program.map_or(&[], |paths| &paths.service),
            id: SampleId {
                pid,
                tid: pid,
                time,
                ..SampleId::default()
            },
        }
    }
}

impl Cgroups {
    /// Knows no process yet.
    pub fn new(id_type: SampleType) -> Self {
        Self {
            id_type,
            reader: Reader::start(),
            asked: HashSet::new(),
            written: HashSet::new(),
            new: HashMap::new(),
            executed: HashMap::new(),
            answered: Vec::new(),
            known: 0,
            out: RecordBuffer::default(),
            passed: RecordBuffer::default(),
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
        if self.new.len() < MAX_READ_PROCESSES {
            // Records of several CPUs are not in the order of time.
            let first = self.new.entry(pid).or_insert(time);
            *first = (*first).min(time);
        }
    }

    /// Processes with first hits in this pass.
    pub fn new_processes(&self) -> impl Iterator<Item = i32> {
        self.new.keys().copied()
    }

    /// Takes the begin of a process or of its next program: it has no control group that is known, and gets another one before it executes a program.
    fn begin(&mut self, change: &ProcessChange<'_>) {
        let ProcessChange { pid, time, .. } = *change;
        let begins = matches!(change.kind, ProcessChangeKind::ProcessBegan { .. });
        if !begins && !change.executes() {
            return;
        }
        let was_asked = self.asked.remove(&pid);
        self.known = 0;
        if begins {
            return;
        }
        if was_asked || self.new.contains_key(&pid) {
            let last = self.executed.entry(pid).or_insert(time);
            *last = (*last).max(time);
        }
        let is_of_later = |answer: &mut Answer| answer.hit.pid == pid && answer.is_of_later(time);
        for answer in self.answered.extract_if(.., is_of_later) {
            // Replaces the record that has the program.
            let record = answer.record(false);
            self.out.write(|bytes| record.encode(self.id_type, bytes));
        }
    }

    /// Whether a process with a hit has no record yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let reader = self.reader.as_ref();
        reader.is_some_and(|reader| reader.missing > 0)
    }

    /// Adds the records of what was read, until none is missing or `patience` is over.
    fn read(&mut self, patience: Duration) {
        let Some(reader) = &mut self.reader else {
            self.executed.clear();
            return;
        };
        let deadline = Instant::now() + patience;
        self.answered.clear();
        while let Some(answer) = reader.answer(deadline) {
            let pid = answer.hit.pid;
            let is_written = self.written.contains(&pid);
            if answer.paths.is_none() && !is_written && self.written.len() < MAX_READ_PROCESSES {
                continue;
            }
            let executed = self.executed.get(&pid);
            let is_of_later = executed.is_some_and(|time| answer.is_of_later(*time));
            let record = answer.record(!is_of_later);
            self.out.write(|bytes| record.encode(self.id_type, bytes));
            if self.written.len() < MAX_READ_PROCESSES {
                self.written.insert(pid);
            }
            if !is_of_later {
                self.answered.push(answer);
            }
        }
        if reader.missing == 0 {
            self.executed.clear();
        }
    }

    /// What was added since the last call.
    fn take_out(&mut self) -> Option<Batch<'_>> {
        std::mem::swap(&mut self.out, &mut self.passed);
        self.out.clear();
        Some(self.passed.batch())
    }
}

impl Stage for Cgroups {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for sample in batch.records().filter_map(|record| record.sample()) {
            self.take_sample(sample);
        }
        for change in batch.changes() {
            self.begin(change);
        }
        batch
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        if self.asked.len() > MAX_READ_PROCESSES {
            self.asked.clear();
        }
        for (pid, time) in self.new.drain() {
            // Its next hit is of another program if it has executed one since.
            if self
                .executed
                .get(&pid)
                .is_none_or(|executed| *executed < time)
            {
                self.asked.insert(pid);
            }
            if let Some(reader) = &mut self.reader {
                reader.ask(FirstHit { pid, time });
            }
        }
        self.known = 0;
        self.read(PASS_LIMIT);
        self.take_out()
    }

    fn end_recording(&mut self) -> Option<Batch<'_>> {
        self.read(LAST_TIMEOUT);
        self.take_out()
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
                let paths = read_paths(hit.pid, hit.time);
                if answer.send(Answer { hit, paths }).is_err() {
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
        if self.missing < MAX_READ_PROCESSES && self.hits.send(hit).is_ok() {
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

/// What was read of a process.
#[derive(Debug)]
struct ProcessPaths {
    /// The path of its control group; empty if that is not known.
    cgroup: Vec<u8>,
    /// The path of the program that it executed when this was read; empty if that is not known.
    exe: Vec<u8>,
    /// What it calls its service; empty if it does not, or if that is not known.
    service: Vec<u8>,
    /// The time after that, ns of the trace's clock.
    read_at: u64,
    /// Its parent.
    parent: i32,
    /// What that is called; empty if it is not known.
    parent_name: Vec<u8>,
}

/// Reads the paths of the process that had a hit at `hit` (ns of the trace's clock); `None` if the process has ended.
fn read_paths(pid: i32, hit: u64) -> Option<ProcessPaths> {
    let directory = live_directory(pid);
    let lines = fs::read(directory.join("cgroup")).ok()?;
    let exe = fs::read_link(directory.join("exe")).ok();
    let environment = ProcessFile::environment(u32::try_from(pid).ok()?);
    let service = environment.ok().and_then(|all| service_name(&all));
    let read_at = trace_clock::now();
    // Read after the lines: a process that is not ending now was not ending then.
    let stat = Process::open(pid).and_then(|process| process.stat()).ok()?;
    if stat.started() > boot_time(hit) {
        // Another process has the id.
        return None;
    }
    // In hierarchies of version 1 a thread that is ending is in the root.
    let live = Process::in_directory(pid, &directory).and_then(|thread| thread.stat());
    let is_ending = live.ok()?.flags & EXITING != 0;
    let parent = Process::open(stat.ppid).and_then(|parent| parent.stat());
    Some(ProcessPaths {
        cgroup: path_of_process(&lines, is_ending)
            .unwrap_or_default()
            .to_vec(),
        exe: exe.map_or_else(Vec::new, |path| path.into_os_string().into_vec()),
        service: service.unwrap_or_default(),
        read_at,
        parent: stat.ppid,
        parent_name: parent.map_or_else(|_| Vec::new(), |parent| parent.comm),
    })
}

/// What a process calls its service, by its environment ("OpenTelemetry Environment Variable Specification"; the values of resource attributes are
/// percent-encoded). A longer name is cut.
fn service_name(environment: &[u8]) -> Option<Vec<u8>> {
    let variable = |name: &[u8]| {
        let mut all = environment.split(|byte| *byte == 0);
        let value = all.find_map(|all| all.strip_prefix(name)?.strip_prefix(b"="));
        value.filter(|value| !value.is_empty())
    };
    let own = || variable(b"OTEL_SERVICE_NAME").map(<[u8]>::to_vec);
    let attribute = || {
        let mut all = variable(b"OTEL_RESOURCE_ATTRIBUTES")?.split(|byte| *byte == b',');
        let value = all.find_map(|all| {
            let (key, value) = all.split_at_checked(all.iter().position(|byte| *byte == b'=')?)?;
            (key.trim_ascii() == b"service.name").then_some(value.get(1..)?.trim_ascii())
        });
        let name: Vec<u8> = percent_decode(value?).collect();
        (!name.is_empty()).then_some(name)
    };
    let mut name = own().or_else(attribute)?;
    name.truncate(MAX_SERVICE_BYTES);
    Some(name)
}

/// The time since boot, ns, of a time of the trace's clock, if the host did not sleep since then; else a later time.
fn boot_time(time: u64) -> u64 {
    let boot = nanoseconds(clock_gettime(ClockId::Boottime));
    let since = boot - i128::from(trace_clock::now()) + i128::from(time);
    u64::try_from(since).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{Comm, Records};

    use super::*;
    use crate::batch::Heads;
    use crate::process_table::{ProcessTable, RecordedProcesses};

    const IDS: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);

    /// A sample of this process.
    fn hit(time: u64) -> Vec<u8> {
        let pid = u64::from(std::process::id());
        let words = [9 | 40 << 48, 1, 0x1000, pid | pid << 32, time];
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// That it executed another program.
    fn executed(time: u64) -> Vec<u8> {
        let pid = std::process::id() as i32;
        let id = SampleId {
            pid,
            tid: pid,
            time,
            ..SampleId::default()
        };
        let comm = Comm {
            pid,
            tid: pid,
            exec: true,
            name: b"x",
            id,
        };
        let mut out = Vec::new();
        comm.encode(IDS, &mut out);
        out
    }

    /// Times and programs of the records that a pass with these batches adds.
    fn pass(cgroups: &mut Cgroups, batches: &[Vec<u8>]) -> Vec<(u64, bool)> {
        let mut heads = Heads::default();
        let mut processes = RecordedProcesses::new(ProcessTable::new(IDS, false));
        for records in batches {
            cgroups.take(processes.take(Batch::read(records, &mut heads)));
        }
        let own = std::env::current_exe().unwrap().into_os_string();
        let mut added = Vec::new();
        for piece in cgroups.end_pass().unwrap().pieces() {
            for record in Records::new(piece) {
                let read = ProcessCgroup::parse(&record, IDS).unwrap();
                assert!(read.exe.is_empty() || read.exe == own.as_encoded_bytes());
                assert!(!read.path.is_empty());
                added.push((read.id.time, !read.exe.is_empty()));
            }
        }
        added
    }

    #[test]
    fn the_name_of_a_service_is_in_the_environment() {
        let name = |environment: &str| {
            let name = service_name(environment.as_bytes());
            name.map(|name| String::from_utf8(name).unwrap())
        };
        for (environment, expected) in [
            ("", None),
            ("PATH=/bin\0OTEL_SERVICE_NAME=shop\0", Some("shop")),
            ("XOTEL_SERVICE_NAME=shop\0OTEL_SERVICE_NAME=\0", None),
            (
                "OTEL_RESOURCE_ATTRIBUTES=a=b, service.name = web%20shop ,c=d",
                Some("web shop"),
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES=my.service.name=x,service.name",
                None,
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES=service.name=a\0OTEL_SERVICE_NAME=b",
                Some("b"),
            ),
        ] {
            assert_eq!(name(environment).as_deref(), expected, "{environment}");
        }
        let long = format!("OTEL_SERVICE_NAME={}", "x".repeat(1000));
        assert_eq!(name(&long).map(|name| name.len()), Some(MAX_SERVICE_BYTES));
    }

    #[test]
    fn a_program_that_was_executed_after_the_hit_is_not_that_of_the_hit() {
        let mut cgroups = Cgroups::new(IDS);
        let now = trace_clock::now();
        assert_eq!(pass(&mut cgroups, &[hit(now)]), [(now, true)]);
        assert_eq!(pass(&mut cgroups, &[hit(now + 1)]), [], "it was asked for");
        // The record of the execution comes later than the answer, in the next pass.
        let now = trace_clock::now();
        assert_eq!(pass(&mut cgroups, &[executed(now - 1)]), []);
        assert_eq!(pass(&mut cgroups, &[hit(now)]), [(now, true)]);
        assert_eq!(pass(&mut cgroups, &[executed(now + 1)]), [(now, false)]);
        // It comes before the answer.
        let now = trace_clock::now();
        let both = [hit(now), executed(now + 1)];
        assert_eq!(pass(&mut cgroups, &both), [(now, false)]);
        let now = trace_clock::now();
        assert_eq!(pass(&mut cgroups, &[hit(now)]), [(now, true)]);
        let both = [executed(now + 1), hit(now + 2)];
        let expected = [(now, false), (now + 2, true)];
        assert_eq!(pass(&mut cgroups, &both), expected);
    }
}

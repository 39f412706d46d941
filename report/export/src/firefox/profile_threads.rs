//! Threads of a profile, each with its columns of samples and of markers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use foldhash::HashMap;
use serde_json::{Value as Json, json};
use usdtrec_analysis::rows::hit_row::HitRow;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::text::buffer::Text;

use crate::column_spool::ColumnSpool;
use crate::firefox::json_table::put_json;
use crate::thread_names::{NewNames, ThreadNames};

/// Columns of samples.
const SAMPLES: [&str; 2] = ["stack", "time"];
/// Columns of markers.
const MARKERS: [&str; 6] = ["category", "data", "endTime", "name", "phase", "startTime"];
/// Threads that are shown at first: those with the most markers.
const MAX_VISIBLE: usize = 30;

/// Threads by number.
#[derive(Debug)]
pub(crate) struct ProfileThreads {
    numbers: HashMap<ThreadKey, usize>,
    threads: Vec<ProfileThread>,
    names: ThreadNames,
    processes: HashMap<i32, String>,
    /// Processes by the paths of their control groups.
    cgroups: BTreeMap<String, BTreeSet<i32>>,
    spool: ColumnSpool,
    /// The time of what is 0 in the profile, ns.
    origin: u64,
    text: Text,
}

/// What decides between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ThreadKey {
    /// A thread of a process.
    Of { pid: i32, tid: i32 },
    /// No thread: what was lost.
    Losses,
}

/// A thread.
#[derive(Debug)]
struct ProfileThread {
    key: ThreadKey,
    name: Option<String>,
    /// Number of its first column.
    columns: usize,
    samples: usize,
    markers: usize,
}

/// When a marker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerTime {
    Instant(u64),
    Interval {
        begin: u64,
        end: u64,
    },
    /// Without an end.
    Begin(u64),
}

/// A marker without its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkerHead {
    pub(crate) time: MarkerTime,
    /// Number of its name.
    pub(crate) name: u32,
    pub(crate) category: usize,
}

impl ProfileThreads {
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            numbers: HashMap::default(),
            threads: Vec::new(),
            names: ThreadNames::default(),
            processes: HashMap::default(),
            cgroups: BTreeMap::new(),
            spool: ColumnSpool::default(),
            origin,
            text: Text::default(),
        }
    }

    /// Bytes of all columns.
    pub(crate) const fn len(&self) -> u64 {
        self.spool.len()
    }

    /// Number of threads.
    pub(crate) const fn count(&self) -> usize {
        self.threads.len()
    }

    /// The thread of a hit.
    pub(crate) fn of_hit(&mut self, session: &TraceSession, row: &HitRow) -> usize {
        let new = self.names.see(session, row);
        let number = self.number(ThreadKey::Of {
            pid: row.pid,
            tid: row.tid,
        });
        if let Some(NewNames {
            process,
            thread,
            cgroup,
        }) = new
        {
            if let Some(process) = process {
                self.processes.insert(row.pid, process.to_owned());
            }
            if let Some(cgroup) = cgroup {
                let processes = self.cgroups.entry(cgroup.to_owned()).or_default();
                processes.insert(row.pid);
            }
            if let (Some(thread), Some(known)) = (thread, self.threads.get_mut(number)) {
                known.name = Some(thread.to_owned());
            }
        }
        number
    }

    /// Control groups with their processes.
    pub(crate) fn cgroups(&self) -> impl Iterator<Item = (&str, String)> {
        self.cgroups.iter().map(|(path, processes)| {
            let processes = processes.iter().map(|pid| match self.processes.get(pid) {
                Some(name) => format!("{name} ({pid})"),
                None => pid.to_string(),
            });
            let processes: Vec<String> = processes.collect();
            (path.as_str(), processes.join(", "))
        })
    }

    /// The number of a thread.
    pub(crate) fn number(&mut self, key: ThreadKey) -> usize {
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let number = self.threads.len();
        self.numbers.insert(key, number);
        self.threads.push(ProfileThread {
            key,
            name: None,
            columns: self.spool.add(SAMPLES.len() + MARKERS.len()),
            samples: 0,
            markers: 0,
        });
        number
    }

    /// Appends milliseconds since the beginning of the profile.
    pub(crate) fn put_time(&self, time: u64, out: &mut Text) {
        milliseconds(time, self.origin, out);
    }

    /// Adds a sample.
    pub(crate) fn sample(&mut self, thread: usize, time: u64, stack: u32) -> io::Result<()> {
        let Some(of) = self.threads.get_mut(thread) else {
            return Ok(());
        };
        let mut row = SpooledRow {
            spool: &mut self.spool,
            column: of.columns,
            is_first: of.samples == 0,
            text: &mut self.text,
        };
        of.samples += 1;
        row.put(|text| text.unsigned(stack.into()))?;
        row.put(|text| milliseconds(time, self.origin, text))
    }

    /// Adds a marker.
    pub(crate) fn marker(
        &mut self,
        thread: usize,
        head: MarkerHead,
        data: &[u8],
    ) -> io::Result<()> {
        let Some(of) = self.threads.get_mut(thread) else {
            return Ok(());
        };
        let mut row = SpooledRow {
            spool: &mut self.spool,
            column: of.columns + SAMPLES.len(),
            is_first: of.markers == 0,
            text: &mut self.text,
        };
        of.markers += 1;
        let (begin, end, phase) = match head.time {
            MarkerTime::Instant(time) => (time, None, 0),
            MarkerTime::Interval { begin, end } => (begin, Some(end), 1),
            MarkerTime::Begin(time) => (time, None, 2),
        };
        row.put(|text| text.unsigned(head.category as u64))?;
        row.put(|text| {
            text.byte(b'\n');
            text.bytes(data);
        })?;
        row.put(|text| match end {
            Some(end) => milliseconds(end, self.origin, text),
            None => text.fixed(b"null"),
        })?;
        row.put(|text| text.unsigned(head.name.into()))?;
        row.put(|text| text.unsigned(phase))?;
        row.put(|text| milliseconds(begin, self.origin, text))
    }

    /// Indices of threads in the order of the profile: by process, the main thread first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        order.sort_by_key(|index| {
            self.threads.get(*index).map(|thread| match thread.key {
                ThreadKey::Losses => (true, 0, false, 0),
                ThreadKey::Of { pid, tid } => (false, pid, pid != tid, tid),
            })
        });
        order
    }

    /// Places in the profile of the threads that are shown at first, the one with the most markers first.
    pub(crate) fn visible(&self) -> Vec<usize> {
        let order = self.order();
        let mut visible: Vec<usize> = (0..order.len()).collect();
        visible.sort_by_key(|at| {
            let thread = order.get(*at).and_then(|index| self.threads.get(*index));
            std::cmp::Reverse(thread.map_or(0, |thread| thread.markers + thread.samples))
        });
        visible.truncate(MAX_VISIBLE);
        visible
    }

    /// Writes the member `threads`.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"\"threads\":[")?;
        let mut before = "\n";
        for index in self.order() {
            let Some(thread) = self.threads.get(index) else {
                continue;
            };
            self.text.clear();
            self.text.string(std::mem::replace(&mut before, ",\n"));
            put_json(&thread.head(&self.processes), &mut self.text);
            // Its tables follow.
            self.text.drop_last(1);
            out.write_all(self.text.as_slice())?;
            let (samples, markers) = (thread.samples, thread.markers);
            let first = thread.columns;
            write!(
                out,
                ",\n\"samples\":{{\"weightType\":\"samples\",\"weight\":null,\"length\":{samples}"
            )?;
            self.columns(first, &SAMPLES, out)?;
            write!(out, "}},\n\"markers\":{{\"length\":{markers}")?;
            self.columns(first + SAMPLES.len(), &MARKERS, out)?;
            out.write_all(b"}}")?;
        }
        out.write_all(b"]")
    }

    fn columns(&mut self, first: usize, names: &[&str], out: &mut dyn Write) -> io::Result<()> {
        for (column, name) in (first..).zip(names) {
            write!(out, ",\"{name}\":[")?;
            self.spool.copy(column, out)?;
            out.write_all(b"]")?;
        }
        Ok(())
    }
}

impl ProfileThread {
    /// What is not in its tables.
    fn head(&self, processes: &HashMap<i32, String>) -> Json {
        let mut head = json!({
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "showMarkersInTimeline": true,
            "name": "Lost events",
            "processName": "Lost events",
            "isMainThread": true,
            "pid": "losses",
            "tid": "losses",
        });
        if let ThreadKey::Of { pid, tid } = self.key {
            let name = self.name.clone();
            head["name"] = name.unwrap_or_else(|| tid.to_string()).into();
            head["processName"] = processes.get(&pid).map_or("", String::as_str).into();
            head["isMainThread"] = (pid == tid).into();
            head["pid"] = pid.to_string().into();
            head["tid"] = tid.into();
        }
        head
    }
}

/// Puts the cells of a row into their columns, one after the other.
struct SpooledRow<'c> {
    spool: &'c mut ColumnSpool,
    column: usize,
    is_first: bool,
    text: &'c mut Text,
}

impl SpooledRow<'_> {
    fn put(&mut self, write: impl FnOnce(&mut Text)) -> io::Result<()> {
        self.text.clear();
        if !self.is_first {
            self.text.byte(b',');
        }
        write(self.text);
        self.spool.put(self.column, self.text.as_slice())?;
        self.column += 1;
        Ok(())
    }
}

/// Appends nanoseconds as milliseconds since a moment, exactly.
fn milliseconds(time: u64, origin: u64, out: &mut Text) {
    if time < origin {
        out.byte(b'-');
    }
    let since = time.abs_diff(origin);
    out.unsigned(since / 1_000_000);
    out.byte(b'.');
    out.fraction((since % 1_000_000 * 1000) as u32, 6);
}

//! Threads of a profile, each with its columns of samples and of markers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::HitRow;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::text::buffer::Text;

use crate::column_spool::ColumnSpool;
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

    /// Appends entries of the profile's information: of each control group, its processes.
    pub(crate) fn put_cgroups(&self, out: &mut Text) {
        for (at, (path, processes)) in self.cgroups.iter().enumerate() {
            let processes = processes.iter().map(|pid| match self.processes.get(pid) {
                Some(name) => format!("{name} ({pid})"),
                None => pid.to_string(),
            });
            let processes: Vec<String> = processes.collect();
            if at > 0 {
                out.byte(b',');
            }
            out.string("{\"label\":");
            out.json_string(path);
            out.string(",\"format\":\"string\",\"value\":");
            out.json_string(&processes.join(", "));
            out.byte(b'}');
        }
    }

    /// Whether a control group is known.
    pub(crate) fn has_cgroups(&self) -> bool {
        !self.cgroups.is_empty()
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
        of.samples += 1;
        let column = of.columns;
        let mut cells = Cells {
            spool: &mut self.spool,
            column,
            text: &mut self.text,
        };
        cells.put(|text| text.unsigned(stack.into()))?;
        let origin = self.origin;
        cells.put(|text| milliseconds(time, origin, text))
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
        of.markers += 1;
        let column = of.columns + SAMPLES.len();
        let (begin, end, phase) = match head.time {
            MarkerTime::Instant(time) => (time, None, 0),
            MarkerTime::Interval { begin, end } => (begin, Some(end), 1),
            MarkerTime::Begin(time) => (time, None, 2),
        };
        let origin = self.origin;
        let mut cells = Cells {
            spool: &mut self.spool,
            column,
            text: &mut self.text,
        };
        cells.put(|text| text.unsigned(head.category as u64))?;
        cells.put(|text| {
            text.byte(b'\n');
            text.bytes(data);
        })?;
        cells.put(|text| match end {
            Some(end) => milliseconds(end, origin, text),
            None => text.fixed(b"null"),
        })?;
        cells.put(|text| text.unsigned(head.name.into()))?;
        cells.put(|text| text.unsigned(phase))?;
        cells.put(|text| milliseconds(begin, origin, text))
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

    /// Appends the members `initialVisibleThreads` and `initialSelectedThreads`.
    pub(crate) fn put_visible(&self, out: &mut Text) {
        let order = self.order();
        let mut visible: Vec<usize> = (0..order.len()).collect();
        visible.sort_by_key(|at| {
            let thread = order.get(*at).and_then(|index| self.threads.get(*index));
            std::cmp::Reverse(thread.map_or(0, |thread| thread.markers + thread.samples))
        });
        visible.truncate(MAX_VISIBLE);
        let selected = visible.first().copied();
        visible.sort_unstable();
        let mut put = |name: &str, all: &[usize]| {
            out.string(name);
            for (at, thread) in all.iter().enumerate() {
                if at > 0 {
                    out.byte(b',');
                }
                out.unsigned(*thread as u64);
            }
            out.byte(b']');
        };
        put("\"initialVisibleThreads\":[", &visible);
        put(",\"initialSelectedThreads\":[", selected.as_slice());
    }

    /// Writes the member `threads`.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"\"threads\":[")?;
        for (at, index) in self.order().into_iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            let Some(thread) = self.threads.get(index) else {
                continue;
            };
            self.text.clear();
            put_head(thread, &self.processes, &mut self.text);
            out.write_all(self.text.as_slice())?;
            let (columns, samples, markers) = (thread.columns, thread.samples, thread.markers);
            self.columns(columns, &SAMPLES, out)?;
            write!(
                out,
                ",\"length\":{samples}}},\n\"markers\":{{\"length\":{markers}"
            )?;
            out.write_all(b",")?;
            self.columns(columns + SAMPLES.len(), &MARKERS, out)?;
            out.write_all(b"}}")?;
        }
        out.write_all(b"]")
    }

    fn columns(&mut self, first: usize, names: &[&str], out: &mut dyn Write) -> io::Result<()> {
        for (at, name) in names.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}\"{name}\":[")?;
            self.spool
                .copy(first + at, &mut Separated { out, begun: false })?;
            out.write_all(b"]")?;
        }
        Ok(())
    }
}

/// Appends a thread up to its columns of samples.
fn put_head(thread: &ProfileThread, processes: &HashMap<i32, String>, out: &mut Text) {
    out.string("\n{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,");
    out.string("\"pausedRanges\":[],\"showMarkersInTimeline\":true,\"name\":");
    match (&thread.name, thread.key) {
        (Some(name), _) => out.json_string(name),
        (None, ThreadKey::Losses) => out.string("\"Lost events\""),
        (None, ThreadKey::Of { tid, .. }) => out.json_string(&tid.to_string()),
    }
    match thread.key {
        ThreadKey::Losses => out.string(
            ",\"processName\":\"Lost events\",\"isMainThread\":true,\"pid\":\"losses\",\"tid\":\"losses\"",
        ),
        ThreadKey::Of { pid, tid } => {
            if let Some(name) = processes.get(&pid) {
                out.string(",\"processName\":");
                out.json_string(name);
            }
            out.string(if pid == tid {
                ",\"isMainThread\":true,\"pid\":\""
            } else {
                ",\"isMainThread\":false,\"pid\":\""
            });
            out.signed(pid.into());
            out.string("\",\"tid\":");
            out.signed(tid.into());
        }
    }
    out.string(",\n\"samples\":{\"weightType\":\"samples\",\"weight\":null,");
}

/// Puts the cells of a row into their columns, one after the other.
struct Cells<'c> {
    spool: &'c mut ColumnSpool,
    column: usize,
    text: &'c mut Text,
}

impl Cells<'_> {
    fn put(&mut self, write: impl FnOnce(&mut Text)) -> io::Result<()> {
        self.text.clear();
        self.text.byte(b',');
        write(self.text);
        self.spool.put(self.column, self.text.as_slice())?;
        self.column += 1;
        Ok(())
    }
}

/// Drops the comma before the first cell of a column.
struct Separated<'o> {
    out: &'o mut dyn Write,
    begun: bool,
}

impl Write for Separated<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes {
            [] => Ok(0),
            [_, ..] if self.begun => self.out.write(bytes),
            [_, rest @ ..] => {
                self.begun = true;
                self.out.write_all(rest)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
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

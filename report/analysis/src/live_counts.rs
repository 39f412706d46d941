//! Which probes of a stream are hit how often, counted anew again and again.

use foldhash::HashMap;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::stream::StreamSamples;
use usdtrec_trace::process::comm::{CommSpan, ProcessNumber};
use usdtrec_trace::rows::{Row, Rows};

use crate::stats::frequency::Frequency;
use crate::summary::counts::{NamedProcesses, by_name};

/// Processes of a probe that are counted one by one in the time of a table.
const PROCESSES: usize = 1 << 16;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    /// Which of the processes that had the pid.
    number: ProcessNumber,
}

/// Counts of a stream's probes.
pub struct LiveCounts {
    rows: Rows,
    /// Counts of each row.
    counts: Vec<Counts>,
    /// What the processes since the last table are called.
    names: HashMap<Process, Option<Box<str>>>,
    /// Losses of no row.
    others_lost: u64,
    /// Whether anything came since the last table.
    news: bool,
}

/// Counts of one row.
#[derive(Debug, Default)]
struct Counts {
    /// Hits since the last table.
    hits: u64,
    /// Counts of each process.
    processes: HashMap<Process, u64>,
    /// Counts of all further processes.
    other_processes: u64,
    /// Hits before that.
    before: u64,
    /// Losses from the beginning.
    lost: u64,
}

/// A probe with hits or losses.
#[derive(Clone, Debug)]
pub struct LiveProbe {
    /// The probe's event.
    pub event: String,
    /// Hits since the last table.
    pub hits: u64,
    /// Hits from the beginning.
    pub all: u64,
    /// The processes since the last table by their names, the most hits first.
    pub processes: Vec<NamedProcesses>,
    /// Whether there are more processes.
    pub has_others: bool,
    /// Losses from the beginning.
    pub lost: u64,
}

/// All probes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveTotal {
    /// Hits since the last table.
    pub hits: u64,
    /// Hits from the beginning.
    pub all: u64,
    /// Losses from the beginning.
    pub lost: u64,
    /// Probes without hits and losses.
    pub silent: usize,
}

impl Counts {
    /// Whether there is nothing to show.
    const fn is_silent(&self) -> bool {
        self.hits + self.before == 0 && self.lost == 0
    }
}

impl LiveCounts {
    /// Counts of probes without hits yet.
    pub fn new(rows: Rows) -> Self {
        Self {
            counts: rows.rows.iter().map(|_| Counts::default()).collect(),
            rows,
            names: HashMap::default(),
            others_lost: 0,
            news: false,
        }
    }

    /// Takes the rows of a stream to which events were added. Former rows keep their places.
    pub fn add_events(&mut self, rows: Rows) {
        self.counts.resize_with(rows.rows.len(), Counts::default);
        self.rows = rows;
    }

    /// Counts samples.
    pub fn add(&mut self, samples: StreamSamples<'_>) -> Result<(), ReportError> {
        let known = samples.session.processes();
        let mut last: Option<(i32, CommSpan)> = None;
        samples.each(|target, sample| {
            let Some(&Some(row)) = self.rows.of_event.get(target.event as usize) else {
                return Ok(());
            };
            self.news = true;
            let counts = &mut self.counts[row];
            counts.hits += 1;
            let (_, comm) = match last {
                Some((pid, comm))
                    if pid == sample.pid && (comm.from..comm.until).contains(&sample.time) =>
                {
                    (pid, comm)
                }
                _ => *last.insert((sample.pid, known.comm(sample.pid, sample.time))),
            };
            let process = Process {
                pid: sample.pid,
                number: comm.process,
            };
            if let Some(hits) = counts.processes.get_mut(&process) {
                *hits += 1;
            } else if counts.processes.len() >= PROCESSES {
                counts.other_processes += 1;
            } else {
                counts.processes.insert(process, 1);
                // Now, because the process may end and be forgotten before the table is shown.
                self.names.entry(process).or_insert_with(|| {
                    comm.name
                        .and_then(|name| Some(known.name(name)?.text.into()))
                });
            }
            Ok(())
        })
    }

    /// Counts losses.
    pub fn lose(&mut self, event: Option<usize>, lost: u64) {
        self.news |= lost > 0;
        let row = event.and_then(|event| *self.rows.of_event.get(event)?);
        let counts = row.and_then(|row| self.counts.get_mut(row));
        let sum = counts.map_or(&mut self.others_lost, |counts| &mut counts.lost);
        *sum = sum.saturating_add(lost);
    }

    /// Whether anything came since the last table.
    pub const fn has_news(&self) -> bool {
        self.news
    }

    /// All probes together.
    pub fn total(&self) -> LiveTotal {
        let sum = |of: fn(&Counts) -> u64| self.counts.iter().map(of).sum::<u64>();
        let hits = sum(|counts| counts.hits);
        let silent = self.counts.iter().filter(|counts| counts.is_silent());
        LiveTotal {
            hits,
            all: hits + sum(|counts| counts.before),
            lost: self.others_lost.saturating_add(sum(|counts| counts.lost)),
            silent: silent.count(),
        }
    }

    /// The probes that were hit or lost hits, the most hits first.
    pub fn probes(&self) -> Vec<LiveProbe> {
        let rows = self.rows.rows.iter().zip(&self.counts);
        let mut rows: Vec<_> = rows.filter(|(_, counts)| !counts.is_silent()).collect();
        // Of equals, the one with the most from the beginning; then the order of the stream stays.
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.hits, counts.before)));
        let probe = |(row, counts): (&Row, &Counts)| LiveProbe {
            event: row.name.clone(),
            hits: counts.hits,
            all: counts.before + counts.hits,
            processes: self.processes(counts),
            has_others: counts.other_processes > 0,
            lost: counts.lost,
        };
        rows.into_iter().map(probe).collect()
    }

    fn processes(&self, counts: &Counts) -> Vec<NamedProcesses> {
        let name = |process: &Process| match self.names.get(process) {
            Some(Some(name)) => name.to_string(),
            _ => format!(":{}", process.pid),
        };
        let named = counts.processes.iter();
        by_name(named.map(|(process, &hits)| Frequency::new(name(process), hits)))
    }

    /// Begins the next table.
    pub fn begin(&mut self) {
        self.news = false;
        self.names.clear();
        for counts in &mut self.counts {
            counts.before += std::mem::take(&mut counts.hits);
            counts.processes.clear();
            counts.other_processes = 0;
        }
    }
}

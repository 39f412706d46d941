//! What a trace holds, probe by probe.

use foldhash::HashMap;
use usdtrec_format::perf::Sample;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::process::comm::ProcessNumber;
use usdtrec_trace::process::names::NameId;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::stats::argument::ArgumentStats;
use crate::stats::bursts::{Pace, Slices};
use crate::stats::frequency::Frequency;
use crate::stats::sketch::content_hash;

/// Processes of a probe that are counted one by one.
const PROCESSES: usize = 1 << 20;

/// Sums of all rows. One a thread, merged at the end.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) rows: Vec<ProbeSums>,
    /// From the earliest to the latest time of the samples.
    pub(crate) time: Option<TimeRange>,
    pub(crate) slices: Slices,
}

/// Sums of one row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeSums {
    pub(crate) count: u64,
    pub(crate) arguments: Vec<ArgumentStats>,
    /// How they are spread over time.
    pub(crate) pace: Pace,
    /// Samples of each process.
    pub(crate) processes: HashMap<Process, u64>,
    /// Of more processes than are counted one by one, those whose [hash](Process::level) has so many zeros are.
    level: u32,
    /// The process of the last samples, and how many of them are not yet in `processes`.
    run: Frequency<Process>,
    /// Samples of processes beyond those that are counted one by one.
    pub(crate) other_processes: u64,
    /// Samples whose site is not known.
    pub(crate) unknown_site: u64,
}

/// A process under one of the names that its main thread had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Which of the processes that had the pid.
    pub(crate) number: ProcessNumber,
    pub(crate) name: Option<NameId>,
}

impl Process {
    /// The process of a sample.
    #[inline]
    fn from_sample(sample: &Sample<'_>, resolver: &mut Resolver<'_>) -> Self {
        let comm = resolver.comm(sample.pid, sample.time);
        Self {
            pid: sample.pid,
            number: comm.process,
            name: comm.name,
        }
    }

    /// Zeros at the end of its hash: the same for any number of threads.
    fn level(self) -> u32 {
        content_hash((self.pid, self.number)).trailing_zeros()
    }
}

impl Summary {
    pub(crate) fn new(rows: &Rows, slices: Slices) -> Self {
        let sums = rows.rows.iter().map(|row| ProbeSums {
            arguments: vec![ArgumentStats::default(); row.arguments.len()],
            ..ProbeSums::default()
        });
        Self {
            rows: sums.collect(),
            time: None,
            slices,
        }
    }

    /// Counts a sample.
    #[inline]
    pub(crate) fn add(
        &mut self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
    ) {
        let Some(&Some(row)) = rows.of_event.get(target.event as usize) else {
            return;
        };
        self.time = Some(TimeRange::with(self.time, sample.time));
        let process = Process::from_sample(sample, resolver);
        let sums = &mut self.rows[row];
        sums.count += 1;
        sums.pace.add(self.slices, sample.time);
        sums.run_process(process);
        match resolver.session().site_of(target, sample) {
            Some(site) => {
                let values = resolver.values(site, sample);
                for (argument, value) in sums.arguments.iter_mut().zip(values) {
                    argument.add(value);
                }
            }
            None => sums.unknown_site += 1,
        }
    }

    /// Adds the sums of another.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        for (sums, theirs) in self.rows.iter_mut().zip(other.rows) {
            sums.merge(theirs);
        }
        self.time = match (self.time, other.time) {
            (Some(one), Some(other)) => Some(one.joined(other)),
            (one, other) => one.or(other),
        };
        self
    }

    /// Samples of all rows.
    pub(crate) fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }
}

impl ProbeSums {
    #[inline]
    fn run_process(&mut self, process: Process) {
        if self.run.value != process {
            self.settle_process();
            self.run.value = process;
        }
        self.run.count += 1;
    }

    fn settle_process(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.count > 0 {
            self.add_process(run.value, run.count);
        }
    }

    /// Counts what is not yet counted.
    pub(crate) fn settle(&mut self) {
        self.settle_process();
        for argument in &mut self.arguments {
            argument.settle();
        }
    }

    fn add_process(&mut self, process: Process, times: u64) {
        if let Some(count) = self.processes.get_mut(&process) {
            *count += times;
        } else if self.level > 0 && process.level() < self.level {
            self.other_processes += times;
        } else {
            self.processes.insert(process, times);
            while self.processes.len() > PROCESSES {
                self.thin_out(self.level + 1);
            }
        }
    }

    /// Leaves only processes of a level. Which ones are left does not depend on the order in which they come.
    fn thin_out(&mut self, level: u32) {
        self.level = level;
        let mut others = 0;
        self.processes.retain(|process, times| {
            let stays = process.level() >= level;
            others += if stays { 0 } else { *times };
            stays
        });
        self.other_processes += others;
    }

    fn merge(&mut self, mut other: Self) {
        other.settle();
        self.count += other.count;
        self.pace.merge(&other.pace);
        self.unknown_site += other.unknown_site;
        self.other_processes += other.other_processes;
        if self.level < other.level {
            self.thin_out(other.level);
        }
        for (process, count) in other.processes {
            self.add_process(process, count);
        }
        for (argument, theirs) in self.arguments.iter_mut().zip(other.arguments) {
            argument.merge(theirs);
        }
    }

    /// The processes by their names, the most samples first.
    pub(crate) fn names(&self, session: &TraceSession) -> Vec<NamedProcesses> {
        by_name(self.processes.iter().map(|(process, &count)| {
            let name = session.processes();
            let name = name.name_or_number(process.name, process.pid);
            Frequency::new(name.into_owned(), count)
        }))
    }
}

/// The processes of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProcesses {
    /// The name.
    pub name: String,
    /// Number of processes with the name.
    pub processes: usize,
    /// Number of their samples.
    pub count: u64,
}

/// Puts processes of one name together, the most samples first. `processes` has the name of each, with its samples.
pub(crate) fn by_name(processes: impl Iterator<Item = Frequency<String>>) -> Vec<NamedProcesses> {
    let mut names: HashMap<String, NamedProcesses> = HashMap::default();
    for process in processes {
        let named = names
            .entry(process.value)
            .or_insert_with_key(|name| NamedProcesses {
                name: name.clone(),
                processes: 0,
                count: 0,
            });
        named.processes += 1;
        named.count += process.count;
    }
    let mut names: Vec<_> = names.into_values().collect();
    names.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    names
}

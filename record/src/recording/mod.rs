//! A running session: the loop that waits for records, drains the rings and writes.

pub(super) mod build_ids;
mod draining;
pub(super) mod ending;
mod finishing;
pub(super) mod following;
pub(super) mod hot_probes;
pub(super) mod late_planter;
mod looks;
pub(super) mod losses;
pub(super) mod mapped_file;
pub(super) mod metadata;
pub(super) mod outcome;
mod pipeline;
mod remarks;
mod reread_looks;
mod rereading;
pub(super) mod session;
pub(super) mod slow_files;
mod snapshot;
pub(super) mod sought_files;
pub(super) mod start;
pub(super) mod triggering;
mod turns;
pub(super) mod unread_files;
mod waiting;
pub(super) mod watched_files;

use std::time::{Duration, Instant};

use usdtrec_attach::aggregation::Aggregation;
use usdtrec_attach::engine::{GuardDeath, StringFinding};
use usdtrec_attach::error::RecordError;
use usdtrec_format::perf::SampleId;
use usdtrec_format::trace::{Totals, put_time_mark};
use usdtrec_kernel::KernelError;
use usdtrec_kernel::host::cpus::Changes;
use usdtrec_kernel::host::descendants::Orphans;
use usdtrec_kernel::host::limits::HighPriority;
use usdtrec_kernel::host::memory::FreeMemory;
use usdtrec_kernel::signals::Signals;
use usdtrec_kernel::trace_clock;
use usdtrec_watch::cgroups::Cgroups;
use usdtrec_watch::left_breakpoints::KernelLog;
use usdtrec_watch::process_table::RecordedProcesses;
use usdtrec_watch::stacks::StackUnwinder;

use crate::budget::budgeting::Budgeting;
use crate::command::RunningCommand;
use crate::output::files::Files;
use crate::recording::draining::ProcessPace;
use crate::recording::following::Follower;
use crate::recording::hot_probes::HotProbes;
use crate::recording::losses::EventCounts;
use crate::recording::outcome::{End, HitTotals, Progress};
use crate::recording::pipeline::Pipeline;
use crate::recording::rereading::Rereading;
use crate::recording::session::Session;
use crate::recording::snapshot::Snapshot;
use crate::recording::triggering::Triggering;
use crate::recording::watched_files::FileWatch;

/// Interval at which losses are counted if they are reported while recording, and the minimum ratio of the pause after a count to its
/// duration: there may be very many events to read.
const COUNT_TIME: Duration = Duration::from_secs(1);
const COUNT_PAUSE: u32 = 50;

/// A running session.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    files: Files,
    command: Option<RunningCommand>,
    started: Instant,
    /// Counts at the start of the current file, or when losses were last reported.
    counts: EventCounts,
    /// When losses are reported next.
    next_count: Instant,
    free_memory: FreeMemory,
    /// When what is aggregated in the kernel is passed on next; `None` for never.
    next_interval: Option<Instant>,
    /// The recorded threads whose events have not reported the end yet (POLLHUP).
    alive: Vec<bool>,
    pipeline: Pipeline,
    /// Whether the last pass left many records in the rings.
    is_behind: bool,
    /// The processes that the next file begins with, from when it is due.
    snapshot: Option<Snapshot>,
    /// CPUs that go off line or come on line.
    cpus: Changes,
    /// Files that appear.
    follower: Follower,
    process_pace: ProcessPace,
    rereading: Rereading,
    guard_deaths: Vec<GuardDeath>,
    triggering: Triggering,
    /// The kernel's log, if it cannot be opened at the end.
    log: Option<KernelLog>,
    /// `None` without a budget.
    budgeting: Option<Budgeting>,
    hot_probes: HotProbes,
    orphans: Orphans,
    /// Files with probes in all processes.
    file_watch: FileWatch,
}

impl Recording {
    /// Totals of all files so far: their samples are hits.
    fn totals(&self) -> Totals {
        without_waits(self.files.totals(), self.session.attached.engine.waits())
    }

    /// The loop. Returns why it ended.
    fn record(
        &mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<End, RecordError> {
        let holds = self.session.attached.engine.holds_mappings();
        let _high_priority = holds.then(HighPriority::begin);
        self.triggering.begin(signals)?;
        loop {
            let end = self.wait(signals)?;
            self.files.look_at_clocks()?;
            let mappings = self.session.attached.engine.take_new_mappings();
            let read = trace_clock::now();
            self.drain();
            self.files.note_drained(self.read_up_to(read));
            self.read_again();
            self.look_at_budget()?;
            self.look_at_hot_probes();
            // Their records were written before, and have been read.
            let slow = self.session.build_ids.slow_tries();
            self.follower.hold(mappings, slow);
            self.plant_found()?;
            self.write_losses()?;
            let came = self.cpus.look();
            self.note_cpus();
            if !self.session.options.following.is_off {
                self.session.attached.follow_to(&came);
            }
            let death = self.session.attached.engine.replace_guard();
            let is_new = |death: &GuardDeath| !self.guard_deaths.contains(death);
            let death = death.filter(is_new);
            self.guard_deaths.extend(death);
            let is_triggered = self.look_at_triggers(signals, read)?;
            self.files.flush_if_due()?;
            self.orphans.reap();
            let counted = self.counted_if_due()?;
            progress(Progress {
                counted,
                elapsed: self.started.elapsed(),
                totals: self.totals(),
                shortfalls: self.session.shortfalls.all(),
                changes: self.files.changes().to_vec(),
                guard_deaths: self.guard_deaths.clone(),
                triggered: self.triggering.take_events(),
                budget: self
                    .budgeting
                    .as_mut()
                    .map_or_else(Vec::new, Budgeting::take_events),
                needs_hit_costs: self.hot_probes.needs_costs(),
                hot_probe: self.hot_probes.take_found(),
            });
            let end = end.or_else(|| is_triggered.then_some(End::Triggered));
            if let Some(end) = end.or_else(|| self.is_full()) {
                return Ok(end);
            }
            self.switch_if_due(signals)?;
        }
    }

    /// Writes the losses since the last report, about once per second, so that they are known even if the recorder is killed.
    fn write_losses(&mut self) -> Result<(), RecordError> {
        let begun = Instant::now();
        if begun < self.next_count {
            return Ok(());
        }
        self.session.attached.engine.forget_ended_threads();
        let counts = self.count()?;
        self.files.add_losses(&counts.since(&self.counts))?;
        self.counts = counts;
        self.next_count = Instant::now() + COUNT_TIME.max(begun.elapsed() * COUNT_PAUSE);
        self.free_memory.give_back_if_due();
        Ok(())
    }

    /// What was aggregated in the kernel so far, if its interval has passed.
    fn counted_if_due(&mut self) -> Result<Option<HitTotals>, RecordError> {
        let (Some(next), Some(interval)) = (&mut self.next_interval, interval(&self.session))
        else {
            return Ok(None);
        };
        let late = Instant::now().saturating_duration_since(*next);
        if Instant::now() < *next {
            return Ok(None);
        }
        // Intervals that passed meanwhile are a part of this one.
        let passed = late.div_duration_f64(interval) as u32;
        *next += interval * (passed + 1);
        let elapsed = self.started.elapsed();
        let hits = self.count()?.by_probe;
        let engine = &self.session.attached.engine;
        let counted = losses::read_totals(engine, elapsed, hits)?;
        self.mark_time(counted.time);
        Ok(Some(counted))
    }

    /// Writes that a time has come, if a reader has to know when stacks up to it have names.
    fn mark_time(&mut self, time: u64) {
        let aggregation = self.session.options.engine.aggregation.as_ref();
        if aggregation.is_some_and(Aggregation::has_stack) {
            let id_type = self.session.attached.processes.attr.attr.id_type();
            let mut record = Vec::new();
            put_time_mark(time, id_type, &mut record);
            self.files.push(&record);
        }
    }

    /// Notes in the trace that hits are missing on CPUs that went off line or came on line.
    fn note_cpus(&mut self) {
        if misses_hits(&self.session, &self.cpus) {
            self.files.note_cpus_changed();
        }
    }

    fn is_full(&self) -> Option<End> {
        let max_size = self.session.options.max_size?;
        (self.files.totals().file_bytes >= max_size).then_some(End::Size)
    }

    fn is_switch_due(&self, signals: &Signals) -> bool {
        // Else the signal is one for a file of the window, and is taken with the triggers.
        let Some(switch) = self.session.options.switch else {
            return false;
        };
        signals.take_switch() || self.files.is_due(switch)
    }

    /// Continues with a new file when it is due and the running processes are read, with which the file begins. They are read in another
    /// thread, because there may be thousands.
    fn switch_if_due(&mut self, signals: &Signals) -> Result<(), RecordError> {
        if self.snapshot.is_none() && self.is_switch_due(signals) {
            let is_readable = !self.session.options.following.is_off;
            let processes = self.pipeline.stages.get::<RecordedProcesses>();
            let known = processes.filter(|_| !is_readable);
            let known = known.map(|known| known.table().copy());
            self.snapshot = Some(Snapshot::begin(&self.session, known));
        }
        // The old file is to have the control groups of its hits.
        let cgroups = self.pipeline.stages.get::<Cgroups>();
        let is_drained = !self.is_behind && !cgroups.is_some_and(Cgroups::is_waiting);
        let switch = self.session.options.switch;
        let is_overdue = switch.is_some_and(|switch| Snapshot::is_overdue(switch, &self.files));
        let snapshot = self.snapshot.as_mut();
        if !snapshot.is_some_and(|snapshot| snapshot.is_ready(is_drained) || is_overdue) {
            return Ok(());
        }
        let Some(snapshot) = self.snapshot.take() else {
            return Ok(());
        };
        let counts = self.count()?;
        self.files.switch(&counts.since(&self.counts))?;
        self.counts = counts;
        self.pipeline.stages.begin_file();
        self.session.shortfalls.begin_file();
        self.session.attached.engine.repeat_strings();
        for records in snapshot.records() {
            self.files.push(&records);
        }
        self.write_strings();
        self.write_open_pauses();
        self.files.flush()
    }

    /// One pass over all rings.
    fn drain(&mut self) {
        let (files, pipeline) = (&mut self.files, &mut self.pipeline);
        let session = &mut self.session;
        let mut changes = self.snapshot.is_some().then(Vec::new);
        pipeline.begin(session, files, changes.as_mut());
        let pass_on = |records: &[u8]| {
            pipeline.take(files, records);
            let stacks = pipeline.stages.get_mut::<StackUnwinder>();
            stacks.map_or_else(Vec::new, |stacks| stacks.take_used().collect())
        };
        self.is_behind = session.drain(pass_on, changes.as_mut());
        pipeline.end(files);
        if let (Some(snapshot), Some(changes)) = (&mut self.snapshot, changes) {
            snapshot.add(&changes);
        }
        if let Some(stacks) = pipeline.stages.get_mut::<StackUnwinder>() {
            session.attached.engine.learn_stacks(stacks.take_used());
        }
        let new = session.build_ids.take_new();
        for file in &new.unanswered {
            self.session.shortfalls.add(following::unanswered(file));
        }
        let left_out = self.follower.take(new);
        self.rereading.leave_out(&left_out);
        self.session.build_ids.forget(left_out);
        self.write_shortfalls();
        self.write_strings();
    }

    /// Writes what was found not to work since the last pass.
    fn write_shortfalls(&mut self) {
        let id_type = self.session.attached.processes.attr.attr.id_type();
        let files = &mut self.files;
        self.session
            .shortfalls
            .write(id_type, |records| files.push(records));
    }

    /// Writes what hits have shown of arguments since the last pass.
    fn write_strings(&mut self) {
        let attached = &mut self.session.attached;
        let id_type = attached.processes.attr.attr.id_type();
        let mut records = Vec::new();
        for StringFinding { string, since } in attached.engine.take_string_findings() {
            let id = SampleId {
                time: since,
                ..SampleId::default()
            };
            string.encode(&id, id_type, &mut records);
        }
        self.files.push(&records);
    }

    fn count(&self) -> Result<EventCounts, RecordError> {
        let counts = EventCounts::read(&self.session.attached);
        Ok(counts.map_err(KernelError::host("the events' counts"))?)
    }
}

/// The interval at which what is aggregated in the kernel is passed on.
fn interval(session: &Session) -> Option<Duration> {
    session.options.engine.aggregation.as_ref()?.interval
}

/// Totals without samples of waits.
const fn without_waits(totals: Totals, waits: u64) -> Totals {
    Totals {
        samples: totals.samples.saturating_sub(waits),
        ..totals
    }
}

/// Whether CPUs went off line or came on line while hits were counted by perf events.
fn misses_hits(session: &Session, cpus: &Changes) -> bool {
    session.attached.engine.counts_by_cpu() && cpus.has_changed()
}

//! A running session: the loop that waits for records, drains the rings and writes.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_format::perf::SampleId;
use usdtrec_format::trace::{Shortfall, Totals};

use crate::appeared::{AppearedFiles, Watcher};
use crate::cgroups::Cgroups;
use crate::command::RunningCommand;
use crate::cpus::Changes;
use crate::ending::Ending;
use crate::engine::{Attached, EverywhereReason, GuardDeath, TextFinding};
use crate::error::RecordError;
use crate::files::Files;
use crate::left_breakpoints::{KernelLog, OwnSites};
use crate::losses::{ProbeLoss, Tally};
use crate::makers::{CodeMakers, MakerFiles};
use crate::session::Session;
use crate::signals::Signals;
use crate::snapshot::Snapshot;
use crate::stacks::{CutStacks, FileElsewhere, StackUnwinder};
use crate::user_filter::UserFilter;
use crate::verify::Verifier;
use crate::watched_file::FileChange;

/// Minimum time in which records accumulate in the rings of programs after the first one.
const GATHER_LEAST: Duration = Duration::from_millis(2);
/// Maximum time. Each switch between a traced program and the recorder empties the CPU's caches and branch predictors for both.
const GATHER_MOST: Duration = Duration::from_millis(20);
/// A pass begins when one part in so many of a ring is filled, at the rate seen.
const GATHER_SHARE: u32 = 8;
/// The rate at which a CPU is assumed to fill a ring at most, bytes per second: records accumulate until half of a ring would be filled.
const FASTEST: usize = 512 << 20;

/// Samples before which none are waited for if stacks are unwound: the first ones have the largest copies, and decide how large others are.
const LEARNING_SAMPLES: u64 = 1000;

/// Maximum time between two passes over the rings.
const POLL_TIME: Duration = Duration::from_millis(100);

/// The same in the first moments, when the command begins and is verified: it may be short.
const FIRST_POLL_TIME: Duration = Duration::from_millis(5);
const FIRST_TIME: Duration = Duration::from_millis(200);

/// Interval at which losses are counted if they are reported while recording, and the minimum ratio of the pause after a count to its
/// duration: there may be very many events to read.
const COUNT_TIME: Duration = Duration::from_secs(1);
const COUNT_PAUSE: u32 = 50;

/// A recording that has ended. The trace is complete; what is open in the kernel and the command may not have ended.
#[derive(Debug)]
pub struct Finished {
    /// The outcome; [`RecordError::Incomplete`] if writing failed: everything flushed before is complete.
    pub outcome: Result<Outcome, RecordError>,
    /// Files in stacks that are not those at their paths; known where copies of stacks were unwound.
    pub elsewhere: Vec<FileElsewhere>,
    /// Where programs with recorded stacks name the code that they made at run time.
    pub maker_files: MakerFiles,
    /// The attached probes, and the command.
    pub ending: Ending,
}

/// The outcome of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Totals of all files.
    pub totals: Totals,
    /// Duration from start to end.
    pub elapsed: Duration,
    /// Losses by probe, the largest first.
    pub losses: Vec<ProbeLoss>,
    /// Number of hits that the kernel counted and that are neither in the trace nor among the losses.
    pub unaccounted: u64,
    /// Events of probes without hits, by name.
    pub silent: Vec<String>,
    /// Number of hits whose programs were still waiting for memory when the recording ended. They are not in the trace.
    pub unfinished: u64,
    /// Number of hits of which no stack was taken, because of [`CallGraph::rate`](crate::CallGraph::rate).
    pub without_stack: u64,
    /// Stacks that are cut because more was needed than was copied, by event, the most first.
    pub cut_stacks: Vec<CutStacks>,
    /// Number of lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub unjudged: u64,
    /// How often a lossless recording continued processes although the ring was full, because the recorder did not run for more than a
    /// second.
    pub suspensions: u64,
    /// Number of processes that recorded ones started and that may have run before they had probes. Their first hits are not in the trace
    /// and not counted as lost.
    pub missed_processes: u64,
    /// Why probes were attached to all processes of the files, after they had been attached to the recorded processes and their children
    /// only; `None` if they were not.
    pub planted_everywhere: Option<EverywhereReason>,
    /// CPUs that went off line or came on line while recording. Process records of those CPUs are missing from then on; if all processes
    /// are recorded, only until the recorder noticed the CPU.
    pub changed_cpus: Vec<u32>,
    /// Whether hits on those CPUs are missing without being counted, as with perf events.
    pub cpus_uncounted: bool,
    /// Files with selected probes that processes first mapped while recording. They were not recorded.
    pub appeared: AppearedFiles,
    /// What was found not to work in recorded processes, so that hits are missing without being counted.
    pub shortfalls: Vec<Shortfall>,
    /// Files that have another name now.
    pub changes: Vec<FileChange>,
    /// Whether texts that arguments point to may be missing in samples, which a reader finds in files.
    pub may_lack_texts: bool,
    /// Why the recording ended.
    pub end: End,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A signal.
    Signal,
    /// The duration is over.
    Time,
    /// The maximum size is reached.
    Size,
    /// The command, or all recorded processes or threads, have ended.
    Gone,
    /// The reader of the output closed it.
    Unread,
}

/// Progress of a running session.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Totals of all files so far.
    pub totals: Totals,
    /// Files that appeared so far.
    pub appeared: AppearedFiles,
    /// What was found not to work so far.
    pub shortfalls: Vec<Shortfall>,
    /// What others did to the files that are written, so far.
    pub changes: Vec<FileChange>,
    /// Guard processes that were killed so far, the same only once.
    pub guard_deaths: Vec<GuardDeath>,
}

/// A running session.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    files: Files,
    command: Option<RunningCommand>,
    started: Instant,
    /// Counts at the start of the current file, or when losses were last reported.
    tally: Tally,
    /// When losses are reported next.
    next_count: Instant,
    /// The recorded threads whose events have not reported the end yet (POLLHUP).
    alive: Vec<bool>,
    takers: Takers,
    /// Whether the last pass left many records in the rings.
    is_behind: bool,
    /// The processes that the next file begins with, from when it is due.
    snapshot: Option<Snapshot>,
    /// CPUs that go off line or come on line.
    cpus: Changes,
    /// Files that appear.
    watcher: Watcher,
    guard_deaths: Vec<GuardDeath>,
}

impl Recording {
    pub(crate) fn new(
        session: Session,
        files: Files,
        command: Option<RunningCommand>,
        started: Instant,
        takers: Takers,
    ) -> Self {
        let cpus = Changes::new(session.cpus().to_vec(), session.options.cpus.is_some());
        let alive = session.attached.processes.hangups().map(|_| true).collect();
        let watcher = Watcher::of(&session);
        Self {
            session,
            files,
            command,
            started,
            tally: Tally::default(),
            next_count: started,
            alive,
            takers,
            is_behind: false,
            snapshot: None,
            cpus,
            watcher,
            guard_deaths: Vec::new(),
        }
    }

    /// Records until a signal, the end of the duration, of the command, or of all recorded processes, and completes the trace. Calls
    /// `progress` at least ten times per second.
    ///
    pub fn run(mut self, signals: &Signals, progress: &mut dyn FnMut(Progress)) -> Finished {
        let looped = self.record(signals, progress);
        let elapsed = self.started.elapsed();
        let is_asked = matches!(looped, Ok(End::Signal));
        signals.forget();
        self.look_last();
        // From here on only: other tracers leave breakpoints, too.
        let log = KernelLog::from_now();
        self.lower_semaphores();
        let attached = &mut self.session.attached;
        // Disabling open events cannot fail. If it did, only their last hits would come too late.
        let _ = attached.disable();
        let mut release = attached.is_quick().then(|| attached.release());
        let (files, takers) = (&mut self.files, &mut self.takers);
        takers.begin(attached, files, None);
        let unfinished = attached.drain_last(release.as_mut(), |records| {
            takers.take(files, records);
        });
        takers.end(files);
        takers.cgroups.finish(|records| files.push(records));
        takers.verifier.finish();
        self.watcher.take(attached.processes.take_new_files());
        self.write_shortfalls();
        self.write_texts();
        self.cpus.look_now();
        self.note_cpus();
        let tally = self.count();
        let Self {
            mut session,
            files,
            takers,
            tally: earlier,
            command,
            cpus,
            watcher,
            ..
        } = self;
        let mut syncs = Vec::new();
        let written = files.totals().samples;
        let left_out = takers.user_filter.as_ref().map_or(0, UserFilter::left_out);
        let hits = tally.as_ref().ok().map(|tally| tally.hits);
        let outcome = looped.and_then(|end| {
            let tally = tally?;
            let finished = files.finish(&tally.since(&earlier))?;
            let totals = finished.totals;
            syncs = finished.syncs;
            Ok(Outcome {
                totals,
                elapsed,
                unaccounted: tally
                    .hits
                    .saturating_sub(totals.samples + tally.lost + left_out),
                losses: tally.by_probe,
                silent: tally.silent,
                unfinished,
                cpus_uncounted: misses_hits(&session, &cpus),
                changed_cpus: cpus.changed(),
                without_stack: session.attached.without_stack(),
                cut_stacks: takers
                    .stacks
                    .as_ref()
                    .map_or_else(Vec::new, StackUnwinder::cut_stacks),
                unjudged: session.attached.unjudged(),
                suspensions: session.attached.suspensions(),
                missed_processes: session.attached.missed(),
                planted_everywhere: session.attached.planted_everywhere(),
                appeared: watcher.finish(),
                shortfalls: session.shortfalls.all(),
                changes: finished.changes,
                may_lack_texts: session.attached.may_lack_texts(),
                end,
            })
        });
        let outcome = outcome.map_err(|error| match (error, hits) {
            (RecordError::Write(source), Some(hits)) => RecordError::Incomplete {
                missing: hits.saturating_sub(written + left_out),
                hits: hits.saturating_sub(left_out),
                source,
            },
            (error, _) => error,
        });
        let release = release.unwrap_or_else(|| session.attached.release());
        let own = OwnSites {
            files: Arc::clone(takers.verifier.files()),
            pids: takers.verifier.processes(),
            notes: session.notes.take(),
            log,
        };
        let leave_command = session.options.leave_command;
        let ending = Ending::new(command, leave_command, release, session.attached)
            .syncing(syncs)
            .checking(own)
            .asked(is_asked);
        Finished {
            outcome,
            elsewhere: takers
                .stacks
                .as_ref()
                .map(StackUnwinder::files_elsewhere)
                .unwrap_or_default(),
            maker_files: takers.makers.map(CodeMakers::finish).unwrap_or_default(),
            ending,
        }
    }

    /// Decrements the semaphores that the kernel counts wrong, and drains the rings meanwhile: until then programs hit their sites.
    fn lower_semaphores(&mut self) {
        let Some(semaphores) = self.session.semaphores.take() else {
            return;
        };
        std::thread::scope(|scope| {
            let lowering = scope.spawn(|| semaphores.finish());
            while !lowering.is_finished() {
                self.drain();
                std::thread::sleep(GATHER_LEAST);
            }
        });
    }

    /// Verifies the processes a last time, before anything is removed.
    fn look_last(&mut self) {
        let (files, takers) = (&mut self.files, &mut self.takers);
        let attached = &mut self.session.attached;
        attached.drain_processes(|records| takers.take(files, records), None);
        takers.verifier.look_last();
    }

    /// The loop. Returns why it ended.
    fn record(
        &mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<End, RecordError> {
        loop {
            let end = self.wait(signals)?;
            self.files.look_at_clocks()?;
            self.drain();
            self.write_losses()?;
            let came = self.cpus.look();
            self.note_cpus();
            self.session.attached.follow_to(&came);
            let death = self.session.attached.replace_guard();
            let is_new = |death: &GuardDeath| !self.guard_deaths.contains(death);
            let death = death.filter(is_new);
            self.guard_deaths.extend(death);
            self.files.flush_if_due()?;
            progress(Progress {
                elapsed: self.started.elapsed(),
                totals: self.files.totals(),
                appeared: self.watcher.found(),
                shortfalls: self.session.shortfalls.all(),
                changes: self.files.changes().to_vec(),
                guard_deaths: self.guard_deaths.clone(),
            });
            if let Some(end) = end.or_else(|| self.is_full()) {
                return Ok(end);
            }
            self.switch_if_due(signals)?;
        }
    }

    /// Waits until a ring has records or the next pass is due. Returns why to end, if it is time.
    fn wait(&mut self, signals: &Signals) -> Result<Option<End>, RecordError> {
        let timeout = if self.is_behind {
            Duration::ZERO
        } else {
            let most = match self.started.elapsed() < FIRST_TIME {
                true => FIRST_POLL_TIME,
                false => POLL_TIME,
            };
            most.min(self.files.flush_time())
        };
        let timeout = self
            .remaining()
            .map_or(timeout, |remaining| remaining.min(timeout));
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let attached = &self.session.attached;
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled = vec![readable(signals.descriptor())];
        // POLLHUP is reported even if it is not requested.
        let hangup = |fd| PollFd::from_borrowed_fd(fd, PollFlags::empty());
        let outputs = signals
            .output()
            .into_iter()
            .chain(self.files.written_pipe());
        polled.extend(outputs.map(hangup));
        let outputs = 1..polled.len();
        polled.extend(attached.program_rings().map(readable));
        let of_programs = outputs.end..polled.len();
        polled.extend(attached.readable().map(readable));
        polled.extend(self.cpus.descriptor().map(readable));
        polled.extend(self.files.clock_descriptor().map(readable));
        let threads = polled.len()..;
        let alive = attached
            .processes
            .hangups()
            .zip(&self.alive)
            .filter(|(_, alive)| **alive);
        polled.extend(alive.map(|(fd, _)| hangup(fd)));
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(host_error("the rings (poll)", error.into())),
        }
        let has = |polled: &PollFd<'_>, flags| polled.revents().intersects(flags);
        let interrupted = has(&polled[0], PollFlags::IN);
        let hung_up = |polled: &PollFd<'_>| has(polled, PollFlags::HUP | PollFlags::ERR);
        let is_unread = polled[outputs].iter().any(hung_up);
        let has_first = polled[of_programs]
            .iter()
            .any(|ring| has(ring, PollFlags::IN));
        let hung_up: Vec<bool> = polled[threads].iter().map(hung_up).collect();
        drop(polled);
        for (alive, hung_up) in self.alive.iter_mut().filter(|alive| **alive).zip(hung_up) {
            *alive = !hung_up;
        }
        if interrupted {
            return Ok(Some(End::Signal));
        }
        if is_unread {
            return Ok(Some(End::Unread));
        }
        let is_learning =
            self.takers.stacks.is_some() && self.files.totals().samples < LEARNING_SAMPLES;
        if has_first && !self.is_behind && !is_learning {
            // These rings wake the recorder for the first record; the records that follow it closely are read in one pass.
            std::thread::sleep(GATHER_LEAST);
            std::thread::sleep(self.gather_more());
        }
        self.is_over()
    }

    /// How much longer records may accumulate, at the rate of the first [`GATHER_LEAST`].
    fn gather_more(&self) -> Duration {
        let attached = &self.session.attached;
        // A process that is stopped waits for the pass.
        if self.session.options.lossless {
            return Duration::ZERO;
        }
        let half = Duration::from_millis((attached.ring_bytes / 2 / (FASTEST / 1000)) as u64);
        let longest = half.min(GATHER_MOST).min(self.files.flush_time() / 4);
        let share = attached.fullest_ring();
        let full = GATHER_LEAST.mul_f64(1.0 / (share * f64::from(GATHER_SHARE)).max(1e-3));
        full.min(longest).saturating_sub(GATHER_LEAST)
    }

    fn is_over(&mut self) -> Result<Option<End>, RecordError> {
        let command_ended = match &mut self.command {
            Some(command) => command
                .try_wait()
                .map_err(|source| host_error("the command's status", source))?
                .is_some(),
            None => false,
        };
        if command_ended || !self.alive.contains(&true) {
            return Ok(Some(End::Gone));
        }
        Ok((self.remaining() == Some(Duration::ZERO)).then_some(End::Time))
    }

    /// Writes the losses since the last report, about once per second, so that they are known even if the recorder is killed.
    fn write_losses(&mut self) -> Result<(), RecordError> {
        let begun = Instant::now();
        if begun < self.next_count {
            return Ok(());
        }
        let tally = self.count()?;
        self.files.add_losses(&tally.since(&self.tally))?;
        self.tally = tally;
        self.next_count = Instant::now() + COUNT_TIME.max(begun.elapsed() * COUNT_PAUSE);
        Ok(())
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
        let asked = signals.take_switch();
        self.session
            .options
            .switch
            .is_some_and(|switch| asked || self.files.is_due(switch))
    }

    /// Continues with a new file when it is due and the running processes are read, with which the file begins. They are read in another
    /// thread, because there may be thousands.
    fn switch_if_due(&mut self, signals: &Signals) -> Result<(), RecordError> {
        if self.snapshot.is_none() && self.is_switch_due(signals) {
            self.snapshot = Some(Snapshot::begin(&self.session));
        }
        let is_drained = !self.is_behind;
        let switch = self.session.options.switch;
        let is_overdue = switch.is_some_and(|switch| Snapshot::is_overdue(switch, &self.files));
        let snapshot = self.snapshot.as_mut();
        if !snapshot.is_some_and(|snapshot| snapshot.is_ready(is_drained) || is_overdue) {
            return Ok(());
        }
        let Some(snapshot) = self.snapshot.take() else {
            return Ok(());
        };
        let tally = self.count()?;
        self.files.switch(&tally.since(&self.tally))?;
        self.tally = tally;
        self.takers.cgroups.begin_file();
        self.session.shortfalls.begin_file();
        self.session.attached.repeat_texts();
        for records in snapshot.records() {
            self.files.push(&records);
        }
        self.write_texts();
        self.files.flush()
    }

    /// The rest of the duration.
    fn remaining(&self) -> Option<Duration> {
        let duration = self.session.options.duration?;
        Some(duration.saturating_sub(self.started.elapsed()))
    }

    /// One pass over all rings.
    fn drain(&mut self) {
        let (files, takers) = (&mut self.files, &mut self.takers);
        let attached = &mut self.session.attached;
        let mut changes = self.snapshot.as_mut().map(Snapshot::changes);
        takers.begin(attached, files, changes.as_deref_mut());
        let pass_on = |records: &[u8]| {
            takers.take(files, records);
            let stacks = takers.stacks.as_mut();
            stacks.map_or_else(Vec::new, |stacks| stacks.take_used().collect())
        };
        self.is_behind = attached.drain(pass_on, changes);
        takers.end(files);
        if let Some(stacks) = &mut takers.stacks {
            attached.learn_stacks(stacks.take_used());
        }
        self.watcher.take(attached.processes.take_new_files());
        self.write_shortfalls();
        self.write_texts();
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
    fn write_texts(&mut self) {
        let attached = &mut self.session.attached;
        let id_type = attached.processes.attr.attr.id_type();
        let mut records = Vec::new();
        for TextFinding { text, since } in attached.take_texts() {
            let id = SampleId {
                time: since,
                ..SampleId::default()
            };
            text.encode(&id, id_type, &mut records);
        }
        self.files.push(&records);
    }

    fn count(&self) -> Result<Tally, RecordError> {
        Tally::read(&self.session.attached)
            .map_err(|source| host_error("the events' counts", source))
    }
}

/// Whether CPUs went off line or came on line while hits were counted by perf events.
fn misses_hits(session: &Session, cpus: &Changes) -> bool {
    session.attached.counts_by_cpu() && cpus.has_changed()
}

/// What records of the rings pass on their way to the file.
#[derive(Debug)]
pub(crate) struct Takers {
    /// Filters that the kernel does not evaluate.
    pub(crate) user_filter: Option<UserFilter>,
    /// Unwinding of copies of stacks.
    pub(crate) stacks: Option<StackUnwinder>,
    /// What programs say of the code that they make.
    pub(crate) makers: Option<CodeMakers>,
    /// The control groups of processes.
    pub(crate) cgroups: Cgroups,
    /// Whether probes work in processes.
    pub(crate) verifier: Verifier,
}

impl Takers {
    /// Begins a pass: where stacks are unwound, with the process records, which are needed first.
    fn begin(&mut self, attached: &mut Attached, files: &mut Files, changes: Option<&mut Vec<u8>>) {
        if let Some(stacks) = &mut self.stacks {
            let now = StackUnwinder::now();
            let (makers, cgroups) = (&mut self.makers, &mut self.cgroups);
            let verifier = &mut self.verifier;
            attached.drain_processes(
                |records| {
                    verifier.take(records);
                    if let Some(makers) = makers {
                        makers.take(records);
                    }
                    cgroups.take(records);
                    stacks.learn(records);
                    files.push(records);
                },
                changes,
            );
            stacks.know(now);
        }
    }

    /// Passes records of a ring to the file, except for samples that a filter excludes.
    fn take(&mut self, files: &mut Files, records: &[u8]) {
        let (stacks, makers) = (&mut self.stacks, &mut self.makers);
        let (cgroups, verifier) = (&mut self.cgroups, &mut self.verifier);
        let mut push = |records: &[u8]| {
            verifier.take(records);
            if let Some(makers) = makers {
                makers.take(records);
            }
            cgroups.take(records);
            match stacks {
                Some(stacks) => stacks.pass(records, |records| files.push(records)),
                None => files.push(records),
            }
        };
        match &mut self.user_filter {
            Some(user_filter) => user_filter.pass(records, push),
            None => push(records),
        }
    }

    /// Ends a pass.
    fn end(&mut self, files: &mut Files) {
        if let Some(stacks) = &mut self.stacks {
            stacks.release(|records| files.push(records));
        }
        if let Some(makers) = &mut self.makers {
            makers.settle();
        }
        self.verifier.take_hits(self.cgroups.new_processes());
        self.cgroups.settle(|records| files.push(records));
    }
}

fn host_error(what: &str, source: io::Error) -> RecordError {
    RecordError::Host {
        what: what.to_owned(),
        source,
    }
}

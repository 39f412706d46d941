//! A running session: the loop that waits, drains and writes.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_format::trace::Totals;

use crate::appeared::{AppearedFiles, Watcher};
use crate::cpus::Changes;
use crate::ending::Ending;
use crate::files::Files;
use crate::losses::{ProbeLoss, Tally};
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::user_filter::UserFilter;
use crate::{RecordError, RunningCommand, Signals};

/// How long records gather in the shared ring once the first is there.
const GATHER_TIME: Duration = Duration::from_millis(2);

/// Longest time between two looks at the rings.
const POLL_TIME: Duration = Duration::from_millis(100);

/// How often losses are counted where they are told while recording, and how many times longer than the counting the pause
/// behind it is at least: there may be very many events to ask.
const COUNT_TIME: Duration = Duration::from_secs(1);
const COUNT_PAUSE: u32 = 50;

/// How a recording went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was written, in all files.
    pub totals: Totals,
    /// From start to stop.
    pub elapsed: Duration,
    /// Losses by probe, most first.
    pub losses: Vec<ProbeLoss>,
    /// Hits that the kernel counted and that are neither in the trace nor among the losses.
    pub unaccounted: u64,
    /// Events of the probes that were not hit, by name.
    pub silent: Vec<String>,
    /// Hits whose programs still slept when the recording ended; they are in no file.
    pub unfinished: u64,
    /// How often `--lossless` let processes go on with a full ring, because the recorder was held up for more than a second.
    pub suspensions: u64,
    /// Processes that recorded ones started and that may have run before they had probes: their first hits are in no file, and not counted as
    /// lost.
    pub missed_processes: u64,
    /// Why probes came to be in all processes of the files, where they were in the recorded processes and their children alone at first; `None` if
    /// they did not.
    pub planted_everywhere: Option<String>,
    /// CPUs that went off line or came on line meanwhile. What processes did there is not known from then on;
    /// where all processes are recorded, until it is noticed that the CPU came.
    pub changed_cpus: Vec<u32>,
    /// Whether hits on those CPUs are missing that nobody counted: perf events do not have them.
    pub cpus_uncounted: bool,
    /// Files with probes that were asked for, and which processes first mapped while recording: they were not recorded.
    pub appeared: AppearedFiles,
    /// Why it ended.
    pub end: End,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A signal.
    Signal,
    /// The time asked for is over.
    Time,
    /// The size asked for is reached.
    Size,
    /// The command, or all that was recorded, has ended.
    Gone,
    /// Who reads the output went away.
    Unread,
}

/// Progress of a running session.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// What was written so far, in all files.
    pub totals: Totals,
    /// Files that appeared so far.
    pub appeared: AppearedFiles,
}

/// A running session.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    files: Files,
    command: Option<RunningCommand>,
    started: Instant,
    /// Counts at the beginning of the present file, or when losses were last told.
    tally: Tally,
    /// When losses are to be told next.
    next_count: Instant,
    /// Which of the recorded threads have not hung up yet.
    alive: Vec<bool>,
    /// Filters that the engine leaves to us.
    user_filter: Option<UserFilter>,
    /// Whether the last pass left much behind.
    behind: bool,
    /// The processes that the next file begins with, once it is due.
    snapshot: Option<Snapshot>,
    /// CPUs that go and come.
    cpus: Changes,
    /// Files that appear.
    watcher: Watcher,
}

impl Recording {
    pub(crate) fn new(
        session: Session,
        files: Files,
        command: Option<RunningCommand>,
        started: Instant,
        user_filter: Option<UserFilter>,
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
            user_filter,
            behind: false,
            snapshot: None,
            cpus,
            watcher,
        }
    }

    /// Records until a signal, the end of the time, of the command, or of all that is recorded, and
    /// ends the trace. `progress` is called at least ten times a second.
    ///
    /// What is open in the kernel, and the command, are handed back in any case. The outcome is [`RecordError::Incomplete`] when
    /// the trace could not be written on: what was flushed is whole.
    /// The trace is complete then, whatever the command and the kernel do: the [`Ending`] is for these.
    pub fn run(
        mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> (Result<Outcome, RecordError>, Ending) {
        let looped = self.record(signals, progress);
        let elapsed = self.started.elapsed();
        signals.forget();
        let attached = &mut self.session.attached;
        // Stopping cannot fail for events that are open; if it did, their last hits would only come too late.
        let _ = attached.disable();
        let mut release = attached.is_quick().then(|| attached.release());
        let (files, user_filter) = (&mut self.files, &mut self.user_filter);
        let unfinished = attached.drain_last(release.as_mut(), |records| {
            take(files, user_filter, records)
        });
        self.watcher.take(attached.processes.take_new_files());
        self.cpus.look_now();
        self.note_cpus();
        let tally = self.count();
        let Self {
            mut session,
            files,
            user_filter,
            tally: earlier,
            command,
            cpus,
            watcher,
            ..
        } = self;
        let mut syncs = Vec::new();
        let written = files.totals().samples;
        let left_out = user_filter.as_ref().map_or(0, UserFilter::left_out);
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
                suspensions: session.attached.suspensions(),
                missed_processes: session.attached.missed(),
                planted_everywhere: session.attached.planted_everywhere(),
                appeared: watcher.finish(),
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
        let leave_command = session.options.leave_command;
        let ending = Ending::new(command, leave_command, release, session.attached).syncing(syncs);
        (outcome, ending)
    }

    /// The loop; tells why it ended.
    fn record(
        &mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<End, RecordError> {
        loop {
            let end = self.wait(signals)?;
            self.drain();
            self.write_losses()?;
            let came = self.cpus.look();
            self.note_cpus();
            self.session.attached.follow_to(&came);
            self.files.flush_if_due()?;
            progress(Progress {
                elapsed: self.started.elapsed(),
                totals: self.files.totals(),
                appeared: self.watcher.found(),
            });
            if let Some(end) = end.or_else(|| self.is_full()) {
                return Ok(end);
            }
            self.switch_if_due(signals)?;
        }
    }

    /// Waits until a ring has something, or it is time to look. Tells whether it is time to end.
    fn wait(&mut self, signals: &Signals) -> Result<Option<End>, RecordError> {
        let timeout = if self.behind {
            Duration::ZERO
        } else {
            POLL_TIME.min(self.files.flush_time())
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
        // Hanging up is told without being asked for.
        let hangup = |fd| PollFd::from_borrowed_fd(fd, PollFlags::empty());
        let outputs = signals
            .output()
            .into_iter()
            .chain(self.files.written_pipe());
        polled.extend(outputs.map(hangup));
        let outputs = 1..polled.len();
        polled.extend(attached.shared_ring().map(readable));
        let shared = outputs.end..polled.len();
        polled.extend(attached.readable().map(readable));
        polled.extend(self.cpus.descriptor().map(readable));
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
        let has_first = polled[shared].iter().any(|ring| has(ring, PollFlags::IN));
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
        if has_first && !self.behind {
            // The shared ring wakes us for the first record; those that come with it are read in one pass.
            std::thread::sleep(GATHER_TIME);
        }
        self.is_over()
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

    /// Reports the losses since they were last reported, about once a second. So they are known also if we are killed.
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

    /// Notes in the trace that hits are missing on CPUs that went or came.
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

    /// Goes on with a new file when it is time, as soon as it is known which processes run: the file begins with that. They are read
    /// beside the recording, because there may be thousands.
    fn switch_if_due(&mut self, signals: &Signals) -> Result<(), RecordError> {
        if self.snapshot.is_none() && self.is_switch_due(signals) {
            self.snapshot = Some(Snapshot::begin(&self.session));
        }
        let is_drained = !self.behind;
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
        for records in snapshot.records() {
            self.files.push(&records);
        }
        self.files.flush()
    }

    /// What is left of the time asked for.
    fn remaining(&self) -> Option<Duration> {
        let duration = self.session.options.duration?;
        Some(duration.saturating_sub(self.started.elapsed()))
    }

    /// One pass over all rings.
    fn drain(&mut self) {
        let (files, user_filter) = (&mut self.files, &mut self.user_filter);
        let attached = &mut self.session.attached;
        let changes = self.snapshot.as_mut().map(Snapshot::changes);
        self.behind = attached.drain(|records| take(files, user_filter, records), changes);
        self.watcher.take(attached.processes.take_new_files());
    }

    fn count(&self) -> Result<Tally, RecordError> {
        Tally::read(&self.session.attached)
            .map_err(|source| host_error("the events' counts", source))
    }
}

/// Whether CPUs went or came while the events were perf's.
fn misses_hits(session: &Session, cpus: &Changes) -> bool {
    session.attached.counts_by_cpu() && cpus.has_changed()
}

/// Takes records from a ring, those of which a filter is true.
fn take(files: &mut Files, user_filter: &mut Option<UserFilter>, records: &[u8]) {
    match user_filter {
        Some(user_filter) => user_filter.pass(records, |records| files.push(records)),
        None => files.push(records),
    }
}

fn host_error(what: &str, source: io::Error) -> RecordError {
    RecordError::Host {
        what: what.to_owned(),
        source,
    }
}

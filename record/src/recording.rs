//! A running session: the loop that waits, drains and writes.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_format::trace::Totals;

use crate::engine::Attached;
use crate::files::Files;
use crate::losses::{ProbeLoss, Tally};
use crate::session::Session;
use crate::sieve::Sieve;
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
    /// Why it ended.
    pub end: End,
    /// How the command ended, if there was one and it did.
    pub command_status: Option<ExitStatus>,
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
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// What was written so far, in all files.
    pub totals: Totals,
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
    sieve: Option<Sieve>,
    /// Whether the last pass left much behind.
    behind: bool,
}

impl Recording {
    pub(crate) fn new(
        session: Session,
        files: Files,
        command: Option<RunningCommand>,
        started: Instant,
        sieve: Option<Sieve>,
    ) -> Self {
        let alive = session.attached.processes.hangups().map(|_| true).collect();
        Self {
            session,
            files,
            command,
            started,
            tally: Tally::default(),
            next_count: started + COUNT_TIME,
            alive,
            sieve,
            behind: false,
        }
    }

    /// Records until a signal, the end of the time, of the command, or of all that is recorded, and
    /// ends the trace. `progress` is called at least ten times a second.
    ///
    /// What is open in the kernel is handed back in any case. The outcome is [`RecordError::Write`] when
    /// the trace could not be written on: what was flushed is whole.
    pub fn run(
        mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> (Result<Outcome, RecordError>, Released) {
        let looped = self.record(signals, progress);
        let elapsed = self.started.elapsed();
        // Stopping cannot fail for events that are open; if it did, their last hits would only come too late.
        let _ = self.session.attached.disable();
        let leave = self.session.options.leave_command;
        let command_status = self.command.as_mut().and_then(|command| {
            if leave {
                command.try_wait().ok().flatten()
            } else {
                command.terminate().ok()
            }
        });
        let (files, sieve) = (&mut self.files, &mut self.sieve);
        let attached = &mut self.session.attached;
        attached.drain_last(|records| take(files, sieve, records));
        let tally = self.count();
        let Self {
            session,
            files,
            sieve,
            tally: earlier,
            ..
        } = self;
        let outcome = looped.and_then(|end| {
            let tally = tally?;
            let totals = files.finish(&tally.since(&earlier))?;
            let left_out = sieve.as_ref().map_or(0, Sieve::left_out);
            Ok(Outcome {
                totals,
                elapsed,
                unaccounted: tally
                    .hits
                    .saturating_sub(totals.samples + tally.lost + left_out),
                losses: tally.by_probe,
                end,
                command_status,
            })
        });
        (
            outcome,
            Released {
                _attached: session.attached,
            },
        )
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
            self.files.flush_if_due()?;
            self.tell_losses()?;
            progress(Progress {
                elapsed: self.started.elapsed(),
                totals: self.files.totals(),
            });
            if let Some(end) = end.or_else(|| self.is_full()) {
                return Ok(end);
            }
            if self.is_switch_due(signals) {
                self.switch()?;
            }
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

    /// Tells the losses since they were last told, where that is done while recording.
    fn tell_losses(&mut self) -> Result<(), RecordError> {
        let begun = Instant::now();
        if !self.files.tells_losses() || begun < self.next_count {
            return Ok(());
        }
        let tally = self.count()?;
        self.files.tell_losses(&tally.since(&self.tally))?;
        self.tally = tally;
        self.next_count = Instant::now() + COUNT_TIME.max(begun.elapsed() * COUNT_PAUSE);
        Ok(())
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

    /// Goes on with a new file, which again says which processes run.
    fn switch(&mut self) -> Result<(), RecordError> {
        let tally = self.count()?;
        self.files.switch(&tally.since(&self.tally))?;
        self.tally = tally;
        self.files.push(&self.session.running_processes());
        self.files.flush()
    }

    /// What is left of the time asked for.
    fn remaining(&self) -> Option<Duration> {
        let duration = self.session.options.duration?;
        Some(duration.saturating_sub(self.started.elapsed()))
    }

    /// One pass over all rings.
    fn drain(&mut self) {
        let (files, sieve) = (&mut self.files, &mut self.sieve);
        let attached = &mut self.session.attached;
        self.behind = attached.drain(|records| take(files, sieve, records));
    }

    fn count(&self) -> Result<Tally, RecordError> {
        Tally::read(&self.session.attached)
            .map_err(|source| host_error("the events' counts", source))
    }
}

/// A finished session's events, still open in the kernel. Dropping it lets go of them, which takes the
/// kernel about a tenth of a second each.
#[derive(Debug)]
pub struct Released {
    _attached: Attached,
}

/// Takes records from a ring, those of which a filter is true.
fn take(files: &mut Files, sieve: &mut Option<Sieve>, records: &[u8]) {
    match sieve {
        Some(sieve) => sieve.pass(records, |records| files.push(records)),
        None => files.push(records),
    }
}

fn host_error(what: &str, source: io::Error) -> RecordError {
    RecordError::Host {
        what: what.to_owned(),
        source,
    }
}

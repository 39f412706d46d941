//! When the rings are read next.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_attach::error::RecordError;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::signals::Signals;
use usdtrec_watch::stacks::StackUnwinder;

use crate::budget::budgeting::Budgeting;
use crate::recording::Recording;
use crate::recording::outcome::End;

/// Minimum time in which records accumulate in the rings of programs after the first one.
pub(super) const MIN_GATHER_TIME: Duration = Duration::from_millis(2);
/// Maximum time. Each switch between a traced program and the recorder empties the CPU's caches and branch predictors for both.
const MAX_GATHER_TIME: Duration = Duration::from_millis(20);
/// A pass begins when one part in so many of a ring is filled, at the rate seen.
const GATHER_SHARE: u32 = 8;
/// The rate at which a CPU is assumed to fill a ring at most, bytes per second: records accumulate until half of a ring would be filled.
const MAX_BYTES_PER_SECOND: usize = 512 << 20;

/// Samples before which none are waited for if stacks are unwound: the first ones have the largest copies, and decide how large others are.
const LEARNING_SAMPLES: u64 = 1000;

/// Maximum time between two passes over the rings.
const POLL_TIME: Duration = Duration::from_millis(100);

/// The same in the first moments, when the command begins and is verified: it may be short.
const FIRST_POLL_TIME: Duration = Duration::from_millis(5);
const FIRST_TIME: Duration = Duration::from_millis(200);
/// The same while a thread is held: what it waits for may wake nobody.
const HELD_TIME: Duration = Duration::from_millis(2);

/// What may end a pause before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PauseEnd {
    /// Probes of a file that appeared are attached, a process is held until its file is read, or probes were detached or attached again.
    Awaited,
    /// There are process records.
    ProcessRecords,
}

/// Whether process records end a pause.
const ENDED_BY_RECORDS: bool = true;

/// Rings that have records.
#[derive(Clone, Copy, Debug)]
struct Filled {
    of_programs: bool,
    of_processes: bool,
}

impl Recording {
    /// Waits until a ring has records or the next pass is due. Returns why to end, if it is time.
    pub(super) fn wait(&mut self, signals: &Signals) -> Result<Option<End>, RecordError> {
        let timeout = Timespec::try_from(self.timeout()).ok();
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
        polled.extend(attached.engine.program_rings().map(readable));
        let of_programs = outputs.end..polled.len();
        polled.extend(attached.readable().map(readable));
        let of_processes = of_programs.end..polled.len();
        polled.extend(attached.engine.new_mappings().map(readable));
        let of_mappings = of_processes.end..polled.len();
        let found = polled.len()..;
        polled.push(readable(self.follower.descriptor()));
        polled.extend(self.switched().map(readable));
        let found = found.start..polled.len();
        polled.extend(self.triggering.descriptor().map(readable));
        polled.extend(self.cpus.descriptor().map(readable));
        polled.extend(self.files.clock_descriptor().map(readable));
        let threads = polled.len()..;
        let alive = attached
            .processes
            .hangups()
            .zip(&self.alive)
            .filter(|(_, alive)| **alive);
        polled.extend(alive.map(|(fd, _)| hangup(fd)));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(KernelError::host("the rings (poll)")(error.into()).into()),
        }
        let has = |polled: &PollFd<'_>, flags| polled.revents().intersects(flags);
        let interrupted = has(&polled[0], PollFlags::IN);
        let hung_up = |polled: &PollFd<'_>| has(polled, PollFlags::HUP | PollFlags::ERR);
        let is_unread = polled[outputs].iter().any(hung_up);
        let has_records = |rings: &[PollFd<'_>]| rings.iter().any(|ring| has(ring, PollFlags::IN));
        let filled = Filled {
            of_programs: has_records(&polled[of_programs]),
            of_processes: has_records(&polled[of_processes]),
        };
        // A process waits for this pass.
        let is_awaited = self.follower.holds()
            || has_records(&polled[of_mappings])
            || has_records(&polled[found]);
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
        // A file is to be made when this pass is done.
        let remaining = [self.triggering.remaining(), self.until_switch()];
        let is_due = remaining.contains(&Some(Duration::ZERO));
        if !self.is_behind && !is_awaited && !is_due {
            self.gather(filled)?;
        }
        self.is_over()
    }

    /// How long until the next pass, if no ring has records.
    fn timeout(&self) -> Duration {
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
        let timeout = self.next_interval.map_or(timeout, |next| {
            timeout.min(next.saturating_duration_since(Instant::now()))
        });
        let held = self.follower.holds().then_some(HELD_TIME);
        [self.triggering.remaining(), self.until_switch(), held]
            .into_iter()
            .flatten()
            .fold(timeout, Duration::min)
    }

    /// Lets records accumulate that follow the first ones closely, so that they are read in one pass: not longer than until there are process
    /// records, and not at all while probes of a file wait to be enabled.
    fn gather(&mut self, filled: Filled) -> Result<(), RecordError> {
        let unwinds = self.pipeline.stages.get::<StackUnwinder>().is_some();
        let is_learning = unwinds && self.files.totals().samples < LEARNING_SAMPLES;
        let mut has_process_records = filled.of_processes;
        if filled.of_programs && !has_process_records && !is_learning {
            // These rings wake the recorder for the first record.
            let mut ended = self.pause(MIN_GATHER_TIME, ENDED_BY_RECORDS)?;
            if ended.is_none() {
                ended = self.pause(self.gather_more(), ENDED_BY_RECORDS)?;
            }
            has_process_records = ended == Some(PauseEnd::ProcessRecords);
        }
        if has_process_records {
            let time = self.process_pace.next(Instant::now());
            self.pause(time, !ENDED_BY_RECORDS)?;
        }
        Ok(())
    }

    /// Waits for a time, but not longer than until a file that appeared is attached or a process is held, nor, if that is chosen, until there are
    /// process records. Returns what has ended it.
    fn pause(&self, time: Duration, by_records: bool) -> Result<Option<PauseEnd>, RecordError> {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let attached = &self.session.attached;
        let mut polled = vec![readable(self.follower.descriptor())];
        polled.extend(attached.engine.new_mappings().map(readable));
        polled.extend(self.switched().map(readable));
        let of_records = polled.len();
        if by_records {
            polled.extend(attached.readable().map(readable));
        }
        let time = self.until_switch().map_or(time, |left| left.min(time));
        let timeout = Timespec::try_from(time).ok();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(KernelError::host("the rings (poll)")(error.into()).into()),
        }
        let is_readable = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::IN);
        Ok(match polled.iter().position(is_readable) {
            None => None,
            Some(first) if first < of_records => Some(PauseEnd::Awaited),
            Some(_) => Some(PauseEnd::ProcessRecords),
        })
    }

    /// Time until probes are to be detached or attached; `None` if none are.
    fn until_switch(&self) -> Option<Duration> {
        self.budgeting.as_ref().and_then(Budgeting::remaining)
    }

    /// Readable when probes were detached or attached; `None` without a budget.
    fn switched(&self) -> Option<BorrowedFd<'_>> {
        self.budgeting.as_ref().map(Budgeting::descriptor)
    }

    /// How much longer records may accumulate, at the rate of the first [`MIN_GATHER_TIME`].
    fn gather_more(&self) -> Duration {
        let attached = &self.session.attached;
        let half = Duration::from_millis(
            (attached.engine.ring_bytes() / 2 / (MAX_BYTES_PER_SECOND / 1000)) as u64,
        );
        let longest = half.min(MAX_GATHER_TIME).min(self.files.flush_time() / 4);
        let share = attached.engine.fullest_ring();
        let full = MIN_GATHER_TIME.mul_f64(1.0 / (share * f64::from(GATHER_SHARE)).max(1e-3));
        full.min(longest).saturating_sub(MIN_GATHER_TIME)
    }

    fn is_over(&mut self) -> Result<Option<End>, RecordError> {
        let command_ended = match &mut self.command {
            Some(command) => command
                .try_wait()
                .map_err(KernelError::host("the command's status"))?
                .is_some(),
            None => false,
        };
        if command_ended || !self.alive.contains(&true) {
            return Ok(Some(End::Gone));
        }
        Ok((self.remaining() == Some(Duration::ZERO)).then_some(End::Time))
    }

    /// The rest of the duration.
    fn remaining(&self) -> Option<Duration> {
        let duration = self.session.options.duration?;
        Some(duration.saturating_sub(self.started.elapsed()))
    }
}

//! Readings of the trace's clock and the wall clock while recording.
//!
//! `CLOCK_MONOTONIC` and `CLOCK_REALTIME` run at the same rate and differ by a constant until somebody sets the second
//! one. So two readings whose differences disagree by more than their errors show a step. The error of a reading is
//! half of the shortest time between two readings of the first clock with one of the second between them. The recorder
//! compares the clocks in each pass, and a timer wakes it at a step (`TFD_TIMER_CANCEL_ON_SET`). At a step it also
//! writes the reading of the pass before: only events between the two can be put on the wrong side.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use usdtrec_format::trace::{ClockReading, WallQuality};

use crate::trace_clock;

/// Time between two readings that are written, ns.
const PAUSE_NS: u64 = 60_000_000_000;
/// How often the clocks are read for a reading that is written; the one with the smallest error counts.
const CAREFUL: usize = 16;
/// How often they are read to see whether the wall clock was set.
const QUICK: usize = 3;
/// An end of the timer that the wall clock does not reach, s after 1970.
const NEVER: i64 = 9_000_000_000;

/// The clocks of a recording.
#[derive(Debug)]
pub struct Clocks {
    last: ClockReading,
    /// When a reading was last written, ns of the trace's clock.
    written: u64,
    /// A timer that becomes readable when the wall clock was set; `None` if there is none. Steps are then found by the next look.
    watch: Option<OwnedFd>,
}

impl Clocks {
    /// Reads the clocks for the first time. The reading is to be written.
    pub fn begin() -> (Self, ClockReading) {
        let first = careful();
        let clocks = Self {
            last: first,
            written: first.clock_ns,
            watch: watch().ok(),
        };
        (clocks, first)
    }

    /// The descriptor that becomes readable when the wall clock was set.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Compares the clocks. Returns the readings that are to be written: those before and after a step, and otherwise one a minute.
    pub fn look(&mut self) -> Vec<ClockReading> {
        if let Some(watch) = &self.watch {
            // It fails with ECANCELED after a step, and with EAGAIN otherwise.
            let _ = rustix::io::read(watch, &mut [0_u8; 8]);
        }
        let now = read(QUICK);
        let before = std::mem::replace(&mut self.last, now);
        if before.is_step(&now) {
            return vec![before, self.read()];
        }
        if now.clock_ns.saturating_sub(self.written) >= PAUSE_NS {
            return vec![self.read()];
        }
        Vec::new()
    }

    /// A reading that is to be written.
    pub fn read(&mut self) -> ClockReading {
        self.last = careful();
        self.written = self.last.clock_ns;
        self.last
    }
}

fn careful() -> ClockReading {
    ClockReading {
        wall_quality: wall_quality(),
        ..read(CAREFUL)
    }
}

/// Reads the wall clock between two readings of the trace's clock, and keeps the reading with the least time between these.
fn read(times: usize) -> ClockReading {
    let one = || {
        let before = trace_clock::now();
        let wall_ns = trace_clock::wall();
        let after = trace_clock::now();
        let between = after.saturating_sub(before);
        ClockReading {
            clock_ns: before + between / 2,
            wall_ns,
            // Half of the time, and what is rounded off.
            error_ns: u32::try_from(between / 2 + 2).unwrap_or(u32::MAX),
            wall_quality: None,
        }
    };
    let first = one();
    (1..times).map(|_| one()).fold(first, |best, next| {
        if next.error_ns < best.error_ns {
            next
        } else {
            best
        }
    })
}

/// A timer that ends when the wall clock is set.
fn watch() -> rustix::io::Result<OwnedFd> {
    let watch = timerfd_create(
        TimerfdClockId::Realtime,
        TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
    )?;
    let never = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec {
            tv_sec: NEVER,
            tv_nsec: 0,
        },
    };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&watch, flags, &never)?;
    Ok(watch)
}

/// Asks `adjtimex(2)`; `None` where it is not allowed, as in many containers.
pub fn wall_quality() -> Option<WallQuality> {
    // SAFETY: `timex` consists of integers, for which zeros are valid. Mode 0 changes nothing.
    let mut answer: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the pointer is to a `timex`, which the call fills.
    if unsafe { libc::adjtimex(&raw mut answer) } < 0 {
        return None;
    }
    let microseconds = |error| u32::try_from(error).unwrap_or(u32::MAX);
    Some(WallQuality {
        is_synchronized: answer.status & libc::STA_UNSYNC == 0,
        estimated_us: microseconds(answer.esterror),
        maximum_us: microseconds(answer.maxerror),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_agree_while_nobody_sets_the_clock() {
        let (mut clocks, first) = Clocks::begin();
        assert!(clocks.descriptor().is_some());
        let later = clocks.read();
        assert!(first.clock_ns < later.clock_ns);
        assert!(!first.is_step(&later), "{first:?} {later:?}");
        assert_eq!(clocks.look(), []);
    }

    #[test]
    fn a_step_is_noted_on_both_sides() {
        let (mut clocks, _) = Clocks::begin();
        let before = ClockReading {
            wall_ns: clocks.last.wall_ns - 3_600_000_000_000,
            ..clocks.last
        };
        clocks.last = before;
        let [early, late] = clocks.look()[..] else {
            panic!("expected two readings");
        };
        assert_eq!(early, before);
        assert!(early.is_step(&late));
        assert_eq!(clocks.look(), []);
    }

    #[test]
    fn a_reading_is_due_after_a_minute() {
        let (mut clocks, _) = Clocks::begin();
        clocks.written -= PAUSE_NS;
        assert_eq!(clocks.look().len(), 1);
        assert_eq!(clocks.look(), []);
    }
}

//! Waiting for a time of day.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::signals::Signals;

const SECOND: i64 = 1_000_000_000;

/// Why waiting for a moment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It has come.
    Due,
    /// Somebody set the wall clock.
    ClockSet,
    /// A signal to end has arrived.
    Signal,
}

/// A moment to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A time of the wall clock, ns since 1970.
    Wall(i64),
    /// A time of `CLOCK_BOOTTIME`, ns: nobody can set that clock.
    Boot(i64),
}

impl Moment {
    /// The wall clock now.
    #[must_use]
    pub fn wall_now() -> i64 {
        nanoseconds(clock_gettime(ClockId::Realtime))
    }

    /// So many nanoseconds from now, however the wall clock is set meanwhile.
    #[must_use]
    pub fn after(nanoseconds_from_now: i64) -> Self {
        let now = nanoseconds(clock_gettime(ClockId::Boottime));
        Self::Boot(now.saturating_add(nanoseconds_from_now))
    }

    /// Nanoseconds since the moment; negative before it.
    #[must_use]
    pub fn elapsed(self) -> i64 {
        match self {
            Self::Wall(moment) => Self::wall_now().saturating_sub(moment),
            Self::Boot(moment) => {
                nanoseconds(clock_gettime(ClockId::Boottime)).saturating_sub(moment)
            }
        }
    }

    /// Waits for the moment, also while the machine is suspended.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn wait(self, signals: &Signals) -> io::Result<Waited> {
        let timer = self.timer()?;
        loop {
            let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
            let mut polled = [readable(signals.descriptor()), readable(timer.as_fd())];
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [signal, rung] = polled.map(|polled| polled.revents().contains(PollFlags::IN));
            if signal {
                return Ok(Waited::Signal);
            }
            if rung {
                // ECANCELED: the wall clock was set.
                match rustix::io::read(&timer, &mut [0_u8; 8]) {
                    Ok(_) => return Ok(Waited::Due),
                    Err(rustix::io::Errno::CANCELED) => return Ok(Waited::ClockSet),
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn timer(self) -> rustix::io::Result<OwnedFd> {
        let (clock, moment, flags) = match self {
            Self::Wall(moment) => (
                TimerfdClockId::Realtime,
                moment,
                TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET,
            ),
            Self::Boot(moment) => (TimerfdClockId::Boottime, moment, TimerfdTimerFlags::ABSTIME),
        };
        let timer = timerfd_create(clock, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // A value of 0 would disarm it.
        let moment = moment.max(1);
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: moment / SECOND,
                tv_nsec: moment % SECOND,
            },
        };
        timerfd_settime(&timer, flags, &value)?;
        Ok(timer)
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec
        .saturating_mul(SECOND)
        .saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_has_passed_is_due() {
        let signals = Signals::catch(false).unwrap();
        for moment in [
            Moment::Wall(Moment::wall_now() - 5),
            Moment::Wall(Moment::wall_now() + 20_000_000),
            Moment::after(-5),
            Moment::after(20_000_000),
            Moment::Wall(-7),
        ] {
            assert_eq!(moment.wait(&signals).unwrap(), Waited::Due);
            assert!(moment.elapsed() >= 0, "{moment:?}");
        }
    }
}

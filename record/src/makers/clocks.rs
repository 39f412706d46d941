//! Times of several clocks, ns.

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

/// A reading of all clocks, and with it the time of day for times of the other ones. At times on the other side of a step of the time of day, it is
/// what it would have been.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    monotonic: u64,
    boot: u64,
    real: u64,
}

impl Clocks {
    pub(super) fn now() -> Self {
        Self {
            monotonic: now(ClockId::Monotonic),
            boot: now(ClockId::Boottime),
            real: now(ClockId::Realtime),
        }
    }

    /// When they were read, by the trace's clock.
    pub(super) const fn trace(self) -> u64 {
        self.monotonic
    }

    /// The time of day at a time of the trace's clock.
    pub(super) const fn of_trace(self, time: u64) -> u64 {
        (self.real + time).saturating_sub(self.monotonic)
    }

    /// The time of day at a time since the host started.
    pub(super) const fn since_boot(self, time: u64) -> u64 {
        (self.real + time).saturating_sub(self.boot)
    }
}

fn now(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * SECOND + tv_nsec as u64
}

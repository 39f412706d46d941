//! Times of several clocks, ns.

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

/// Time of day for times of the other clocks. If it is set while recording, it is what it would have been.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    monotonic: u64,
    boot: u64,
    real: u64,
}

/// Time of the trace's clock.
pub(super) fn monotonic() -> u64 {
    now(ClockId::Monotonic)
}

impl Clocks {
    pub(super) fn now() -> Self {
        Self {
            monotonic: monotonic(),
            boot: now(ClockId::Boottime),
            real: now(ClockId::Realtime),
        }
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

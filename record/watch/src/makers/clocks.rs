//! Times of several clocks, ns.

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;
/// A change of the time of day beside the trace's clock that is a step, ns. Less is that of a clock which is adjusted.
const STEP: u64 = SECOND / 10;
/// Maximum number of readings that are kept.
const MAX_READINGS: usize = 64;

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

/// The reading when recording began, and one after each step of the time of day.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockReadings {
    begun: Clocks,
    later: Vec<Clocks>,
}

impl ClockReadings {
    /// The first reading.
    pub(super) const fn new(begun: Clocks) -> Self {
        Self {
            begun,
            later: Vec::new(),
        }
    }

    /// Keeps a reading if the time of day was set since the last one. Of very many, the last one is replaced.
    pub(super) fn add(&mut self, now: Clocks) {
        let last = self.later.last().unwrap_or(&self.begun);
        if last.real.abs_diff(now.of_trace(last.monotonic)) < STEP {
            return;
        }
        self.later.truncate(MAX_READINGS - 1);
        self.later.push(now);
    }

    /// The first reading.
    pub(super) const fn begun(&self) -> Clocks {
        self.begun
    }

    /// All readings.
    pub(super) fn all(&self) -> impl Iterator<Item = Clocks> {
        std::iter::once(self.begun).chain(self.later.iter().copied())
    }
}

fn now(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * SECOND + tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(monotonic: u64, real: u64) -> Clocks {
        Clocks {
            monotonic: monotonic * SECOND,
            boot: monotonic * SECOND,
            real: real * SECOND,
        }
    }

    #[test]
    fn each_step_has_a_reading() {
        let mut readings = ClockReadings::new(reading(10, 1000));
        for (monotonic, real) in [
            (11, 1001),
            (12, 5002),
            (13, 5003),
            (14, 804),
            (15, 805),
            // Back to what it was.
            (16, 1006),
        ] {
            readings.add(reading(monotonic, real));
        }
        // The time of day at the beginning, as each of them has it.
        let begun = readings
            .all()
            .map(|reading| reading.of_trace(10 * SECOND) / SECOND);
        assert_eq!(begun.collect::<Vec<_>>(), [1000, 5000, 800, 1000]);
        for monotonic in 20..200 {
            readings.add(reading(monotonic, 1000 * monotonic));
        }
        assert_eq!(readings.all().count(), 1 + MAX_READINGS);
    }
}

//! The time of day of a trace's times.
//!
//! Files have readings from the whole recording (`record/kernel/src/clocks/`), so times of day are right on both sides of a
//! step. Streams have the reading of their head only.

use usdtrec_format::trace::{ClockReading, TimeRange, Trace, WallQuality};

/// By how much a time of day that is converted to the trace's clock and back may differ, ns.
const MAX_DIFFERENCE: u128 = 1000;

/// The wall clock beside the trace's, from the readings in the trace. It has at least one.
#[derive(Clone, Debug)]
pub struct WallTimes {
    /// In the order of time.
    readings: Vec<ClockReading>,
    /// Whether the errors of the readings are known.
    has_errors: bool,
}

/// A change of the wall clock while recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The last reading before it.
    pub before: ClockReading,
    /// The first reading after it.
    pub after: ClockReading,
}

impl ClockStep {
    /// By how much the clock was set forward, ns; negative if backward.
    pub fn by_ns(&self) -> i128 {
        self.after.ahead() - self.before.ahead()
    }
}

impl WallTimes {
    /// `None` if the trace does not say what time of day it was.
    pub(crate) fn from_trace(trace: &Trace) -> Option<Self> {
        let readings = trace.clock_readings();
        if !readings.is_empty() {
            return Some(Self {
                readings: readings.to_vec(),
                has_errors: true,
            });
        }
        // Where only the clock's id is known, the moment is 0.
        let clock = trace.info().clock.filter(|clock| clock.wall_ns != 0)?;
        Some(Self::of_one(clock.wall_ns, clock.clock_ns))
    }

    /// Times of day by one reading.
    pub fn of_one(wall_ns: u64, clock_ns: u64) -> Self {
        let reading = ClockReading {
            clock_ns,
            wall_ns,
            error_ns: 0,
            wall_quality: None,
        };
        Self {
            readings: vec![reading],
            has_errors: false,
        }
    }

    /// The time of day, ns since 1970.
    pub fn wall(&self, time: u64) -> i128 {
        i128::from(time) + self.ahead(time)
    }

    /// Nanoseconds by which the wall clock was ahead of the trace's at a time of the trace's clock. Between two readings it is interpolated,
    /// unless the clock was set between them: then it is that of the first up to the second, which a recorder makes right after the step.
    fn ahead(&self, time: u64) -> i128 {
        let after = self
            .readings
            .partition_point(|reading| reading.clock_ns <= time);
        let before = after.checked_sub(1).and_then(|at| self.readings.get(at));
        match (before, self.readings.get(after)) {
            (Some(before), Some(after)) if !before.is_step(after) => {
                let change = after.ahead() - before.ahead();
                let part = i128::from(time - before.clock_ns);
                let whole = i128::from(after.clock_ns - before.clock_ns);
                // Two readings without a step differ by less than 2^33 ns, so that this cannot overflow.
                before.ahead() + change * part / whole
            }
            (Some(reading), _) | (None, Some(reading)) => reading.ahead(),
            (None, None) => 0,
        }
    }

    /// The times of the trace's clock at which the wall clock showed a time, ns since 1970, from the first to the last: several if it was set back.
    /// Where it was set forward past the time, those by the readings before.
    pub(crate) fn clock(&self, wall: i128) -> TimeRange {
        let time = |ahead: i128| u64::try_from((wall - ahead).max(0)).unwrap_or(u64::MAX);
        let mut found: Option<TimeRange> = None;
        for reading in self.turns() {
            // The difference changes slowly between two readings.
            let near = time(self.ahead(time(reading.ahead())));
            if self.wall(near).abs_diff(wall) <= MAX_DIFFERENCE {
                found = Some(TimeRange::with(found, near));
            }
        }
        let first = self.readings.first();
        let otherwise = || time(first.map_or(0, ClockReading::ahead));
        found.unwrap_or_else(|| TimeRange::at(otherwise()))
    }

    /// The time of the first reading, ns of the trace's clock.
    pub(crate) fn first_reading(&self) -> u64 {
        self.readings.first().map_or(0, |reading| reading.clock_ns)
    }

    /// Number of readings; `None` if the trace has only one whose error is not known.
    pub fn count(&self) -> Option<usize> {
        self.has_errors.then_some(self.readings.len())
    }

    /// The largest error of a reading, ns.
    pub fn error_ns(&self) -> u32 {
        let errors = self.readings.iter().map(|reading| reading.error_ns);
        errors.max().unwrap_or(0)
    }

    /// When the clock was set.
    pub fn steps(&self) -> impl Iterator<Item = ClockStep> {
        let pairs = self.readings.windows(2);
        pairs.filter_map(|pair| match pair {
            [before, after] if before.is_step(after) => Some(ClockStep {
                before: *before,
                after: *after,
            }),
            _ => None,
        })
    }

    /// The first reading, and those before and after each step.
    pub fn turns(&self) -> Vec<ClockReading> {
        let mut turns: Vec<ClockReading> = self.readings.first().copied().into_iter().collect();
        for step in self.steps() {
            turns.extend([step.before, step.after]);
        }
        turns.dedup();
        turns
    }

    /// What the host said of its wall clock at the worst reading: not synchronized, or the largest errors. `None` if it did not say.
    pub fn quality(&self) -> Option<WallQuality> {
        let all = self
            .readings
            .iter()
            .filter_map(|reading| reading.wall_quality);
        all.reduce(|worst, next| WallQuality {
            is_synchronized: worst.is_synchronized && next.is_synchronized,
            estimated_us: worst.estimated_us.max(next.estimated_us),
            maximum_us: worst.maximum_us.max(next.maximum_us),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 1_795_000_000_000_000_000;

    fn reading(clock_ns: u64, wall_ns: u64) -> ClockReading {
        ClockReading {
            clock_ns,
            wall_ns,
            error_ns: 30,
            wall_quality: None,
        }
    }

    fn times(readings: Vec<ClockReading>) -> WallTimes {
        WallTimes {
            readings,
            has_errors: true,
        }
    }

    #[test]
    fn times_between_readings_are_interpolated() {
        let times = times(vec![reading(1000, DAY), reading(2000, DAY + 1040)]);
        let shown = [0, 1000, 1500, 2000, 3000].map(|time| times.wall(time) - i128::from(DAY));
        assert_eq!(shown, [-1000, 0, 520, 1040, 2040]);
        assert_eq!(times.steps().count(), 0);
        assert_eq!(times.turns(), [reading(1000, DAY)]);
    }

    #[test]
    fn a_step_is_right_on_both_sides() {
        let hour = 3_600_000_000_000;
        let readings = vec![
            reading(1000, DAY + 1000),
            reading(5000, DAY + 5000),
            reading(5010, DAY - hour + 5010),
            reading(9000, DAY - hour + 9000),
        ];
        let times = times(readings.clone());
        let shown = [1000, 4999, 5009, 5010, 8000].map(|time| times.wall(time) - i128::from(DAY));
        let hour = i128::from(hour);
        assert_eq!(shown, [1000, 4999, 5009, 5010 - hour, 8000 - hour]);
        let steps: Vec<_> = times.steps().map(|step| step.by_ns()).collect();
        assert_eq!(steps, [-hour]);
        assert_eq!(times.turns(), readings[..3]);
    }

    #[test]
    fn times_of_day_are_converted_back() {
        let hour = 3_600_000_000_000;
        let times = times(vec![
            reading(1000, DAY + 1000),
            reading(5000, DAY + 5000),
            reading(5010, DAY - 4000 + 5010),
            reading(2 * hour, DAY - 4000 + 2 * hour),
        ]);
        let clock = |wall: u64| times.clock(wall.into());
        assert_eq!(clock(DAY + 900), TimeRange::at(900));
        // The clock was set back by 4000 ns.
        assert_eq!(clock(DAY + 2000), TimeRange::new(2000, 6000));
        assert_eq!(clock(DAY + hour), TimeRange::at(hour + 4000));
        assert_eq!(clock(0), TimeRange::at(0));
    }

    /// Two readings at one moment, and at the ends of time, as files may have.
    #[test]
    fn no_reading_overflows() {
        let ends = [reading(0, u64::MAX), reading(0, 0), reading(u64::MAX, 0)];
        let times = times(ends.to_vec());
        for time in [0, 1, u64::MAX] {
            assert!(times.wall(time) <= i128::from(u64::MAX) * 2);
        }
        let same = super::tests::times(vec![reading(7, 7), reading(7, 7), reading(8, 8)]);
        assert_eq!([6, 7, 8].map(|time| same.wall(time)), [6, 7, 8]);
    }
}

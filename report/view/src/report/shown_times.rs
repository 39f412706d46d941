//! How moments are shown in reports: by the trace's clock, or as times of day.

use usdtrec_trace::wall_times::WallTimes;

use crate::script::times::WallClock;

/// How moments are shown.
#[derive(Debug)]
pub struct ShownTimes {
    /// `None` for the trace's clock.
    wall: Option<WallClock>,
}

impl ShownTimes {
    /// Times of day in this machine's time zone, if there are `times` to convert by; else seconds of the trace's clock.
    pub(crate) fn new(times: Option<&WallTimes>) -> Self {
        Self {
            wall: times.cloned().map(WallClock::local_of),
        }
    }

    /// Times of day in UTC, if there are `times` to convert by; else seconds of the trace's clock.
    #[must_use]
    pub fn utc(times: Option<&WallTimes>) -> Self {
        Self {
            wall: times.cloned().map(WallClock::utc_of),
        }
    }

    /// The unit of what is shown: seconds, or none for times of day.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.wall {
            Some(_) => "",
            None => " s",
        }
    }

    /// A time, ns of the trace's clock, with so many digits of the fraction of a second, 1 to 9.
    pub fn shown(&self, time: u64, digits: u32) -> String {
        if let Some(wall) = &self.wall {
            return wall.shown(time, digits as usize);
        }
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        let fraction = rest / 10_u64.pow(9_u32.saturating_sub(digits));
        format!("{seconds}.{fraction:0width$}", width = digits as usize)
    }
}

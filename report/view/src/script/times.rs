//! Times of lines other than the trace's own: since another line, and on the wall clock.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::wall_times::WallTimes;

use crate::text::buffer::{Piece, Text};

const SECOND: u64 = 1_000_000_000;
/// How local times are written, as `strftime` has it.
const LOCAL: &str = "%Y-%m-%d %H:%M:%S.";

/// What the times of lines are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeOrigin {
    /// The zero of the trace's clock.
    #[default]
    Clock,
    /// The first line.
    First,
    /// The line before; 0 in the first one.
    Previous,
}

/// A time between two lines. It is negative only where samples could not be put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeDifference {
    negative: bool,
    nanoseconds: u64,
}

impl TimeOrigin {
    /// The time of a line, counted from what this says.
    #[inline]
    pub(crate) const fn difference(self, time: u64, before: PreviousTimes) -> TimeDifference {
        let from = match self {
            Self::Clock => 0,
            Self::First if before.first == 0 => time,
            Self::Previous if before.previous == 0 => time,
            Self::First => before.first,
            Self::Previous => before.previous,
        };
        TimeDifference {
            negative: time < from,
            nanoseconds: time.abs_diff(from),
        }
    }

    /// What such a time is called in JSON and CSV, besides `time_ns`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Clock => None,
            Self::First => Some("reltime_ns"),
            Self::Previous => Some("deltatime_ns"),
        }
    }
}

/// How times are written in text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextTimes {
    pub(crate) origin: TimeOrigin,
    /// Digits of their fractions.
    pub(crate) digits: usize,
}

impl TextTimes {
    /// Appends the time of day and the time of a line, if these fields are among those requested.
    pub(crate) fn put(
        self,
        fields: Fields,
        time: u64,
        before: PreviousTimes,
        times_of_day: &mut Option<TimesOfDay<'_>>,
        out: &mut Text,
    ) {
        if let (true, Some(times_of_day)) = (fields.has(Field::Tod), times_of_day) {
            times_of_day.put(time, self.digits, out);
            out.byte(b' ');
        }
        if fields.has(Field::Time) {
            out.since(self.origin.difference(time, before), 5, self.digits);
            out.fixed(b": ");
        }
    }
}

impl Text {
    /// Appends a time in seconds, `width` columns wide before the point, and with `digits` digits after it.
    pub(crate) fn since(&mut self, since: TimeDifference, width: usize, digits: usize) {
        let start = self.len();
        if since.negative {
            self.byte(b'-');
        }
        self.unsigned(since.nanoseconds / SECOND);
        let missing = width.saturating_sub(self.len() - start);
        self.pad(start, missing, 0, b' ');
        if digits > 0 {
            self.byte(b'.');
            self.fraction((since.nanoseconds % SECOND) as u32, digits);
        }
    }

    /// Appends a time in nanoseconds.
    pub(crate) fn since_ns(&mut self, since: TimeDifference) {
        if since.negative {
            self.byte(b'-');
        }
        self.unsigned(since.nanoseconds);
    }
}

/// The wall clock of a trace.
#[derive(Debug)]
pub(crate) struct WallClock {
    times: WallTimes,
    zone: TimeZone,
    /// How dates are written, as `strftime` has it.
    form: &'static str,
}

impl WallClock {
    /// In this machine's time zone, as perf shows it.
    pub(crate) fn local(session: &TraceSession) -> Result<Self, ReportError> {
        Self::new(session, TimeZone::system(), LOCAL)
    }

    /// In UTC (RFC 3339).
    pub(crate) fn utc(session: &TraceSession) -> Result<Self, ReportError> {
        Self::new(session, TimeZone::UTC, "%Y-%m-%dT%H:%M:%S.")
    }

    /// The same of these times.
    pub(crate) fn local_of(times: WallTimes) -> Self {
        let zone = TimeZone::system();
        Self {
            times,
            zone,
            form: LOCAL,
        }
    }

    /// In UTC, of these times.
    pub(crate) fn utc_of(times: WallTimes) -> Self {
        Self {
            times,
            zone: TimeZone::UTC,
            form: LOCAL,
        }
    }

    /// A time with so many digits of its fraction.
    pub(crate) fn shown(&self, time: u64, digits: usize) -> String {
        let mut out = Text::default();
        TimesOfDay::new(self).put(time, digits, &mut out);
        out.into_string()
    }

    fn new(
        session: &TraceSession,
        zone: TimeZone,
        form: &'static str,
    ) -> Result<Self, ReportError> {
        let times = session.wall_times().cloned();
        let times = times.ok_or(QuestionError::NoTimeOfDay)?;
        Ok(Self { times, zone, form })
    }

    fn date(&self, second: i128) -> String {
        match Timestamp::from_second(i64::try_from(second).unwrap_or(i64::MAX)) {
            Ok(time) => time
                .to_zoned(self.zone.clone())
                .strftime(self.form)
                .to_string(),
            Err(_) => format!("<{second} s after 1970>."),
        }
    }
}

/// Writes times of day. One a thread.
#[derive(Debug)]
pub(crate) struct TimesOfDay<'s> {
    clock: &'s WallClock,
    /// The last second, and its text with a point at its end.
    last: Option<i128>,
    text: Piece,
}

impl<'s> TimesOfDay<'s> {
    pub(crate) fn new(clock: &'s WallClock) -> Self {
        Self {
            clock,
            last: None,
            text: Piece::default(),
        }
    }

    /// Appends a time with so many digits of its fraction.
    pub(crate) fn put(&mut self, time: u64, digits: usize, out: &mut Text) {
        let wall = self.clock.times.wall(time);
        let second = wall.div_euclid(SECOND.into());
        if self.last != Some(second) {
            self.last = Some(second);
            self.text = Piece::new(self.clock.date(second).as_bytes());
        }
        out.piece(&self.text);
        if digits == 0 {
            return out.drop_last(1);
        }
        out.fraction(wall.rem_euclid(SECOND.into()) as u32, digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Text)) -> String {
        let mut out = Text::default();
        write(&mut out);
        out.into_string()
    }

    #[test]
    fn times_count_from_other_lines() {
        let mut before = PreviousTimes::default();
        let mut shown = Vec::new();
        for time in [5_000_000_000, 5_000_001_999, 4_000_000_000] {
            shown.push(
                [TimeOrigin::Clock, TimeOrigin::First, TimeOrigin::Previous].map(|times| {
                    let since = times.difference(time, before);
                    written(|out| out.since(since, 5, 6))
                }),
            );
            before.pass(time);
        }
        assert_eq!(shown[0], ["    5.000000", "    0.000000", "    0.000000"]);
        assert_eq!(shown[1], ["    5.000001", "    0.000001", "    0.000001"]);
        assert_eq!(shown[2], ["    4.000000", "   -1.000000", "   -1.000001"]);
    }

    #[test]
    fn times_of_day_are_of_the_zone_and_the_second() {
        let clock = |wall_ns, clock_ns| WallClock {
            times: WallTimes::of_one(wall_ns, clock_ns),
            zone: TimeZone::fixed(jiff::tz::offset(2)),
            form: "%Y-%m-%d %H:%M:%S.",
        };
        let now = clock(1_795_000_000_999_999_999, 0);
        let mut times = TimesOfDay::new(&now);
        let shown = [0, 1, 999_999_999, 1_000_000_000].map(|time| {
            written(|out| times.put(time, 9, out)) + &written(|out| times.put(time, 0, out))
        });
        assert_eq!(shown[0], "2026-11-18 13:06:40.9999999992026-11-18 13:06:40");
        assert_eq!(shown[1], "2026-11-18 13:06:41.0000000002026-11-18 13:06:41");
        assert_eq!(shown[2], "2026-11-18 13:06:41.9999999982026-11-18 13:06:41");
        assert_eq!(shown[3], "2026-11-18 13:06:41.9999999992026-11-18 13:06:41");
        let before_1970 = clock(0, 1);
        let mut times = TimesOfDay::new(&before_1970);
        assert_eq!(
            written(|out| times.put(0, 3, out)),
            "1970-01-01 01:59:59.999"
        );
        let late = clock(u64::MAX, 0);
        let late = written(|out| TimesOfDay::new(&late).put(u64::MAX, 0, out));
        assert_eq!(late, "3139-02-10 01:09:07");
    }
}

//! Spans of time by the wall clock: `02:37:07..02:37:09`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use usdtrec_format::trace::TimeRange;

use crate::wall_times::WallTimes;

/// Days of a trace that are looked through for a time of day.
const MAX_DAYS: usize = 4096;

/// A span of time by the wall clock, both ends in it.
#[derive(Clone, Debug, PartialEq)]
pub struct DaySpan {
    /// `None` for an open begin.
    pub from: Option<WrittenTime>,
    /// `None` for an open end.
    pub to: Option<WrittenTime>,
}

/// A time of the wall clock as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenTime {
    /// With its distance from UTC: `2026-11-20T02:37:07Z`.
    Moment(Timestamp),
    /// With a date: `2026-11-20T02:37:07`.
    Local(DateTime),
    /// Of the day on which it is in the trace: `02:37:07`.
    OfDay(Time),
}

impl WrittenTime {
    /// `None` if the text is no time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(moment) = text.parse() {
            return Some(Self::Moment(moment));
        }
        if text.contains('-') {
            return text.parse().ok().map(Self::Local);
        }
        text.parse().ok().map(Self::OfDay)
    }
}

/// The times between which a trace has samples, and the zone of times that do not say theirs.
struct Days<'z> {
    begin: Timestamp,
    end: Timestamp,
    zone: &'z TimeZone,
}

impl DaySpan {
    /// Parses `FROM..TO`, of which one may be empty, or the same with a comma.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let ends = text.split_once("..").or_else(|| text.split_once(','));
        let (from, to) = ends?;
        let end = |text: &str| match text.trim() {
            "" => Some(None),
            text => WrittenTime::parse(text).map(Some),
        };
        let (from, to) = (end(from)?, end(to)?);
        let backwards = match (from, to) {
            (None, None) => true,
            (Some(WrittenTime::Moment(from)), Some(WrittenTime::Moment(to))) => from > to,
            (Some(WrittenTime::Local(from)), Some(WrittenTime::Local(to))) => from > to,
            // The end of a time of day may be on the next day.
            _ => false,
        };
        (!backwards).then_some(Self { from, to })
    }

    /// The times of the trace's clock, in a trace whose samples have the times of `whole`. Times that do not say their zone are of `zone`.
    pub(crate) fn within(&self, whole: TimeRange, wall: &WallTimes, zone: &TimeZone) -> TimeRange {
        let timestamp = |time: u64, otherwise: Timestamp| {
            Timestamp::from_nanosecond(wall.wall(time)).unwrap_or(otherwise)
        };
        let days = Days {
            begin: timestamp(whole.first, Timestamp::MIN),
            end: timestamp(whole.last, Timestamp::MAX),
            zone,
        };
        let (from, to) = self.moments(&days);
        let clock = |moment: Timestamp| wall.clock(moment.as_nanosecond());
        TimeRange {
            first: from.map_or(0, |moment| clock(moment).first),
            last: to.map_or(u64::MAX, |moment| clock(moment).last),
        }
    }

    /// Both ends, as moments.
    fn moments(&self, days: &Days<'_>) -> (Option<Timestamp>, Option<Timestamp>) {
        use WrittenTime::OfDay;
        match (self.from, self.to) {
            (Some(OfDay(from)), Some(OfDay(to))) => days.between(from, to),
            (Some(OfDay(from)), None) => (days.from(from), None),
            (Some(OfDay(from)), Some(to)) => {
                let to = days.moment(to);
                (to.and_then(|to| days.last_until(from, to)), to)
            }
            (None, Some(OfDay(to))) => (None, days.first_from(to, days.begin)),
            (Some(from), Some(OfDay(to))) => {
                let from = days.moment(from);
                (from, from.and_then(|from| days.first_from(to, from)))
            }
            (from, to) => {
                let moment = |time: Option<WrittenTime>| days.moment(time?);
                (moment(from), moment(to))
            }
        }
    }
}

impl Days<'_> {
    fn date(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.zone.clone()).date()
    }

    fn at(&self, day: Date, time: Time) -> Option<Timestamp> {
        let local = day.to_datetime(time).to_zoned(self.zone.clone());
        local.ok().map(|local| local.timestamp())
    }

    /// A time that says its day.
    fn moment(&self, time: WrittenTime) -> Option<Timestamp> {
        match time {
            WrittenTime::Moment(moment) => Some(moment),
            WrittenTime::Local(local) => {
                let local = local.to_zoned(self.zone.clone());
                local.ok().map(|local| local.timestamp())
            }
            WrittenTime::OfDay(time) => self.first_from(time, self.begin),
        }
    }

    /// The day before a moment and those from then on.
    fn days(&self, moment: Timestamp) -> impl Iterator<Item = Date> {
        let day = self.date(moment);
        let first = day.checked_sub(1.day()).unwrap_or(day);
        let next = |day: &Date| day.checked_add(1.day()).ok();
        std::iter::successors(Some(first), next).take(MAX_DAYS)
    }

    /// The first moment from another one on at which it is a time of day.
    fn first_from(&self, time: Time, moment: Timestamp) -> Option<Timestamp> {
        let mut moments = self.days(moment).filter_map(|day| self.at(day, time));
        moments.find(|found| *found >= moment)
    }

    /// The last one up to another moment.
    fn last_until(&self, time: Time, moment: Timestamp) -> Option<Timestamp> {
        let moments = self.days(moment).take(2);
        let moments = moments.filter_map(|day| self.at(day, time));
        moments.filter(|found| *found <= moment).last()
    }

    /// A time of day with an open end: where the trace has it, else before the trace.
    fn from(&self, time: Time) -> Option<Timestamp> {
        let within = self.first_from(time, self.begin);
        let within = within.filter(|found| *found <= self.end);
        within.or_else(|| self.last_until(time, self.begin))
    }

    /// The first day on which the trace has something between two times of day; else that on which it begins.
    fn between(&self, from: Time, to: Time) -> (Option<Timestamp>, Option<Timestamp>) {
        let on = |day: Date| {
            let end = if to < from {
                day.checked_add(1.day()).ok()?
            } else {
                day
            };
            Some((self.at(day, from)?, self.at(end, to)?))
        };
        let spans = self.days(self.begin).filter_map(on);
        let mut spans = spans.take_while(|(from, _)| *from <= self.end);
        let found = spans.find(|(_, to)| *to >= self.begin);
        let found = found.or_else(|| on(self.date(self.begin)));
        found.map_or((None, None), |(from, to)| (Some(from), Some(to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;

    /// The trace's clock is 0 at this moment.
    fn wall(at: &str) -> WallTimes {
        let moment: Timestamp = at.parse().unwrap();
        WallTimes::of_one(moment.as_nanosecond().try_into().unwrap(), 0)
    }

    fn within(span: &str, begin: &str, hours: u64, zone: &TimeZone) -> (f64, f64) {
        let span = DaySpan::parse(span).unwrap();
        let whole = TimeRange::new(10 * SECOND, hours * HOUR);
        let range = span.within(whole, &wall(begin), zone);
        let seconds = |time: u64| match time {
            u64::MAX => f64::INFINITY,
            time => time as f64 / 1e9,
        };
        (seconds(range.first), seconds(range.last))
    }

    #[test]
    fn times_of_day_are_those_of_the_trace() {
        let utc = TimeZone::UTC;
        let begin = "2026-11-20T23:00:00Z";
        let hour = 3600.0;
        let check = |span: &str, from: f64, to: f64| {
            assert_eq!(within(span, begin, 30, &utc), (from, to), "{span}");
        };
        check("23:30..23:31:00.5", hour / 2.0, hour / 2.0 + 60.5);
        check(
            "02:37:07..02:37:09",
            3.0 * hour + 2227.0,
            3.0 * hour + 2229.0,
        );
        check("23:59:59..00:00:01", hour - 1.0, hour + 1.0);
        check("02:00..", 3.0 * hour, f64::INFINITY);
        check("..02:00", 0.0, 3.0 * hour);
        check("2026-11-21T02:00..03:00", 3.0 * hour, 4.0 * hour);
        check("02:00..2026-11-21 03:00", 3.0 * hour, 4.0 * hour);
        check(
            "2026-11-21T02:00:00+01:00..2026-11-21T02:00:00Z",
            2.0 * hour,
            3.0 * hour,
        );
        // The trace begins within.
        check("22:59:59..23:00:20", 0.0, 20.0);
        check("22:00..", 23.0 * hour, f64::INFINITY);
        let short = within("22:00..", begin, 1, &utc);
        assert_eq!(short, (0.0, f64::INFINITY), "an hour before the trace");
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(within("01:00:30..01:01", begin, 1, &zone), (30.0, 60.0));
    }

    #[test]
    fn what_is_no_time_of_day_is_refused() {
        for text in [
            "..",
            "25:00..26:00",
            "02:00",
            "x..02:00",
            "2026-11-21T02:00..2026-11-20T02:00",
            "2026-11-21T02:00Z..2026-11-20T02:00Z",
        ] {
            assert_eq!(DaySpan::parse(text), None, "{text}");
        }
    }
}

//! Spans of time by the wall clock: `02:37:07..02:37:09`.
//!
//! Where clocks go back, an hour is there twice. A span in it is that of which the trace has something, or from the earlier to the later one if it has of both.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
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

/// The moments of a time by the wall clock: two where clocks go back, else one.
#[derive(Clone, Copy)]
struct Moments {
    first: Timestamp,
    last: Timestamp,
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
            (None, None) => (None, None),
            (Some(from), None) => {
                let from = match from {
                    OfDay(time) => days.from(time),
                    from => days.moments(from),
                };
                (from.map(|from| days.earliest(from)), None)
            }
            (None, Some(to)) => {
                let to = days.moments(to);
                (None, to.map(|to| days.latest(to)))
            }
            (Some(OfDay(from)), Some(OfDay(to))) => days.between(from, to),
            (Some(OfDay(from)), Some(to)) => {
                let to = days.moments(to);
                days.both(to.and_then(|to| days.last_until(from, to.last)), to)
            }
            (Some(from), Some(OfDay(to))) => {
                let from = days.moments(from);
                days.both(from, from.and_then(|from| days.first_from(to, from.first)))
            }
            (Some(from), Some(to)) => days.both(days.moments(from), days.moments(to)),
        }
    }
}

impl Days<'_> {
    fn date(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.zone.clone()).date()
    }

    fn has(&self, moment: Timestamp) -> bool {
        (self.begin..=self.end).contains(&moment)
    }

    fn at(&self, day: Date, time: Time) -> Option<Moments> {
        self.local(day.to_datetime(time))
    }

    fn local(&self, local: DateTime) -> Option<Moments> {
        let found = self.zone.to_ambiguous_timestamp(local);
        let first = found.compatible().ok()?;
        let last = match found.offset() {
            AmbiguousOffset::Fold { .. } => found.later().ok()?,
            _ => first,
        };
        Some(Moments { first, last })
    }

    /// The moments of a time; of a time of day, of the first day on which the trace has it, or has begun before.
    fn moments(&self, time: WrittenTime) -> Option<Moments> {
        match time {
            WrittenTime::Moment(moment) => Some(Moments {
                first: moment,
                last: moment,
            }),
            WrittenTime::Local(local) => self.local(local),
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

    /// A time of day on the first day on which it is at or after a moment.
    fn first_from(&self, time: Time, moment: Timestamp) -> Option<Moments> {
        let mut moments = self.days(moment).filter_map(|day| self.at(day, time));
        moments.find(|found| found.last >= moment)
    }

    /// The same on the last day on which it is at or before a moment.
    fn last_until(&self, time: Time, moment: Timestamp) -> Option<Moments> {
        let moments = self.days(moment).take(2);
        let moments = moments.filter_map(|day| self.at(day, time));
        moments.filter(|found| found.first <= moment).last()
    }

    /// A time of day with an open end: where the trace has it, else before the trace.
    fn from(&self, time: Time) -> Option<Moments> {
        let within = self.first_from(time, self.begin);
        let within = within.filter(|found| found.first <= self.end);
        within.or_else(|| self.last_until(time, self.begin))
    }

    /// Of two moments the earlier one, unless the trace has only the later one.
    fn earliest(&self, Moments { first, last }: Moments) -> Timestamp {
        if self.has(last) && !self.has(first) {
            last
        } else {
            first
        }
    }

    /// Of two moments the later one, unless the trace has only the earlier one.
    fn latest(&self, Moments { first, last }: Moments) -> Timestamp {
        if self.has(first) && !self.has(last) {
            first
        } else {
            last
        }
    }

    /// A span that both ends give, which is there twice where clocks go back: that of which the trace has something, or from the earlier to the later moment if it has of
    /// both. `None` if it has nothing.
    fn overlapping(&self, from: Moments, to: Moments) -> Option<(Timestamp, Timestamp)> {
        let has =
            |from: Timestamp, to: Timestamp| from <= to && from <= self.end && to >= self.begin;
        match (has(from.first, to.first), has(from.last, to.last)) {
            (true, true) => Some((from.first, to.last)),
            (true, false) => Some((from.first, to.first)),
            (false, true) => Some((from.last, to.last)),
            (false, false) => None,
        }
    }

    /// Both ends of a span.
    fn both(
        &self,
        from: Option<Moments>,
        to: Option<Moments>,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        match (from, to) {
            (Some(from), Some(to)) => {
                let nothing = (from.first, to.first);
                let (from, to) = self.overlapping(from, to).unwrap_or(nothing);
                (Some(from), Some(to))
            }
            (from, to) => (from.map(|from| from.first), to.map(|to| to.last)),
        }
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
        let mut spans = spans.take_while(|(from, _)| from.first <= self.end);
        let found = spans.find(|(from, to)| self.overlapping(*from, *to).is_some());
        let found = found.or_else(|| on(self.date(self.begin)));
        self.both(found.map(|(from, _)| from), found.map(|(_, to)| to))
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

    /// In this zone, the hour from 02:00 is there twice in that night: from 00:00 and from 01:00 UTC.
    #[test]
    fn of_an_hour_that_is_there_twice_the_trace_decides() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let minute = 60.0;
        let (before, after) = ("2026-10-25T00:05:00Z", "2026-10-25T01:05:00Z");
        for (span, begin, hours, from, to) in [
            // Only the later hour, only the earlier one, and both.
            ("02:10..02:20", after, 1, 5.0, 15.0),
            ("02:10..02:20", before, 1, 5.0, 15.0),
            ("02:10..02:20", before, 2, 5.0, 75.0),
            ("02:50..03:10", before, 2, 45.0, 125.0),
            ("02:50..03:10", after, 1, 0.0, 65.0),
            ("01:30..02:10", before, 1, 0.0, 65.0),
            ("01:30..02:20", "2026-10-25T00:30:00Z", 1, 0.0, 50.0),
            ("2026-10-25T02:10..02:20", after, 1, 5.0, 15.0),
            ("2026-10-25T02:10..2026-10-25T02:20", after, 1, 5.0, 15.0),
            ("02:10..2026-10-25T02:20", after, 1, 5.0, 15.0),
            ("2026-10-25T02:10:00+02:00..02:20", before, 2, 5.0, 75.0),
            ("..02:20", after, 1, 0.0, 15.0),
            ("..02:20", before, 1, 0.0, 15.0),
            ("..02:20", before, 2, 0.0, 75.0),
            ("02:10..", after, 1, 5.0, f64::INFINITY),
            ("02:10..", before, 2, 5.0, f64::INFINITY),
        ] {
            let found = within(span, begin, hours, &zone);
            assert_eq!(found, (from * minute, to * minute), "{span} from {begin}");
        }
        // The trace begins and ends between both.
        let found = within("02:05:02..02:05:05", before, 1, &zone);
        assert_eq!(found, (2.0, 5.0));
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

//! Spans of time: `FROM,TO` in seconds of the trace's clock, `A%-B%` of its length, `-5m` before its end, or `FROM..TO` by the wall clock.

use std::str::FromStr;

use jiff::tz::TimeZone;
use usdtrec_format::trace::{TimeRange, Trace};

use crate::time_of_day::DaySpan;
use crate::wall_times::WallTimes;

/// A span of time, both ends in it.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeSpan {
    /// Times of the trace's clock, ns; `None` for an open end.
    Times(Option<u64>, Option<u64>),
    /// Parts of the time from the first to the last sample, 0 to 100.
    Percent(f64, f64),
    /// So many ns before the end of the recording.
    BeforeEnd(u64, u64),
    /// Times of day, in the reader's time zone if they do not say theirs.
    Days(DaySpan),
}

impl TimeSpan {
    /// The times of this span in a trace. `None` if it is by the wall clock, and the trace has no time of day.
    #[must_use]
    pub fn within(&self, trace: TraceTimes, wall: Option<&WallTimes>) -> Option<TimeRange> {
        let TraceTimes {
            samples: whole,
            end,
        } = trace;
        Some(match *self {
            Self::Times(from, to) => TimeRange {
                first: from.unwrap_or(0),
                last: to.unwrap_or(u64::MAX),
            },
            Self::BeforeEnd(from, to) => TimeRange {
                first: end.saturating_sub(from),
                last: end.saturating_sub(to),
            },
            Self::Days(ref days) => days.within(whole, wall?, &TimeZone::system()),
            Self::Percent(from, to) => {
                let TimeRange { first, last } = whole;
                let length = last.saturating_sub(first) as f64;
                let at = |percent: f64| first.saturating_add((length * percent / 100.0) as u64);
                TimeRange {
                    first: at(from),
                    // The whole is the whole, whatever its length rounds to.
                    last: if to >= 100.0 { last } else { at(to) },
                }
            }
        })
    }

    /// Whether it is about the length or the end of a trace, so that it means the same in two of them.
    #[must_use]
    pub const fn is_relative(&self) -> bool {
        matches!(self, Self::Percent(..) | Self::BeforeEnd(..))
    }
}

/// Times of a trace that spans may be relative to, ns.
#[derive(Clone, Copy, Debug)]
pub struct TraceTimes {
    /// From the first to the last sample.
    pub samples: TimeRange,
    /// When recording ended; where the trace does not say, the last sample.
    pub end: u64,
}

impl TraceTimes {
    pub(crate) fn new(samples: TimeRange, trace: &Trace) -> Self {
        let end = trace.recorded().map_or(0, |recorded| recorded.last);
        Self {
            samples,
            end: end.max(samples.last),
        }
    }
}

/// A text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?}: expected FROM,TO in seconds of the trace's clock (either may be empty), a part such as 10%-20%, the time before the end such as -5m or \
     -5m..-1m, or times of day such as 02:37:07..02:37:09, with a date as 2026-11-20T02:37:07.."
)]
pub struct TimeSpanError(
    /// The text.
    pub String,
);

impl FromStr for TimeSpan {
    type Err = TimeSpanError;

    fn from_str(text: &str) -> Result<Self, TimeSpanError> {
        let span = if text.contains('%') {
            percents(text)
        } else if text.trim().starts_with('-') {
            before_end(text)
        } else if text.contains("..") || text.contains(':') {
            DaySpan::parse(text).map(TimeSpan::Days)
        } else {
            times(text)
        };
        span.ok_or_else(|| TimeSpanError(text.to_owned()))
    }
}

fn percents(text: &str) -> Option<TimeSpan> {
    let percent = |text: &str| {
        let number: f64 = text.trim().strip_suffix('%')?.parse().ok()?;
        (0.0..=100.0).contains(&number).then_some(number)
    };
    let (from, to) = text.split_once('-')?;
    let (from, to) = (percent(from)?, percent(to)?);
    (from <= to).then_some(TimeSpan::Percent(from, to))
}

/// `-5m`, `-5m..` or `-5m..-1m`.
fn before_end(text: &str) -> Option<TimeSpan> {
    let before = |text: &str| duration(text.trim().strip_prefix('-')?);
    let (from, to) = match text.split_once("..") {
        Some((from, to)) if !to.trim().is_empty() => (before(from)?, before(to)?),
        Some((from, _)) => (before(from)?, 0),
        None => (before(text)?, 0),
    };
    (from >= to).then_some(TimeSpan::BeforeEnd(from, to))
}

/// A number with a unit of time, ns.
fn duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ];
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(number.len()..)?;
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok()?;
    is_plain.then_some((number * length) as u64)
}

fn times(text: &str) -> Option<TimeSpan> {
    let time = |text: &str| match text.trim() {
        "" => Some(None),
        text => nanoseconds(text).map(Some),
    };
    let (from, to) = text.split_once(',')?;
    let (from, to) = (time(from)?, time(to)?);
    let backwards = matches!((from, to), (Some(from), Some(to)) if from > to);
    (!backwards).then_some(TimeSpan::Times(from, to))
}

/// `SECONDS[.FRACTION]`, exact; digits beyond the ninth of the fraction are cut.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(span: &TimeSpan, whole: (u64, u64)) -> (u64, u64) {
        let trace = TraceTimes {
            samples: TimeRange::new(whole.0, whole.1),
            end: whole.1,
        };
        let range = span.within(trace, None).unwrap();
        (range.first, range.last)
    }

    #[test]
    fn seconds_are_exact() {
        let span: TimeSpan = "3302.307456,3302.5".parse().unwrap();
        let (from, to) = (3_302_307_456_000, 3_302_500_000_000);
        assert_eq!(span, TimeSpan::Times(Some(from), Some(to)));
        assert_eq!(within(&span, (0, 1)), (from, to));
        let open: TimeSpan = ",0.0000000019".parse().unwrap();
        assert_eq!(open, TimeSpan::Times(None, Some(1)));
        assert_eq!(within(&open, (5, 6)), (0, 1));
        let rest: TimeSpan = "7,".parse().unwrap();
        assert_eq!(within(&rest, (5, 6)), (7_000_000_000, u64::MAX));
    }

    #[test]
    fn percents_are_of_the_length() {
        let span: TimeSpan = "10%-20%".parse().unwrap();
        assert_eq!(within(&span, (1000, 2000)), (1100, 1200));
        let all: TimeSpan = "0%-100%".parse().unwrap();
        let whole = (1, u64::MAX - 3);
        assert_eq!(within(&all, whole), whole);
    }

    #[test]
    fn times_before_the_end_are_counted_from_it() {
        let minute = 60_000_000_000;
        let whole = (minute, 10 * minute);
        for (text, from, to) in [
            ("-5m", 5, 10),
            ("-5m..", 5, 10),
            ("-2.5m..-60s", 7, 9),
            ("-1h", 0, 10),
        ] {
            let (first, last) = within(&text.parse().unwrap(), whole);
            assert_eq!((first / minute, last / minute), (from, to), "{text}");
        }
        let quiet_at_the_end = TraceTimes {
            samples: TimeRange::new(whole.0, whole.1),
            end: 12 * minute,
        };
        let last = "-5m".parse::<TimeSpan>().unwrap();
        let range = TimeRange::new(7 * minute, 12 * minute);
        assert_eq!(last.within(quiet_at_the_end, None), Some(range));
    }

    #[test]
    fn times_of_day_need_a_wall_clock() {
        let span: TimeSpan = "02:37:07..02:37:09".parse().unwrap();
        let samples = TimeRange::new(0, 1);
        assert_eq!(span.within(TraceTimes { samples, end: 1 }, None), None);
        assert!(!span.is_relative());
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "",
            "5",
            "a,b",
            "2,1",
            "20%-10%",
            "0%-101%",
            "10%",
            "-1,2",
            "1e3,",
            "1.,2",
            "%-%",
            "99999999999999,",
            "-5",
            "-5x",
            "-1m..-5m",
            "-1m..5m",
            "02:37:07",
            "02:37:07..x",
            "..",
        ] {
            let error = TimeSpanError(text.to_owned());
            assert_eq!(text.parse::<TimeSpan>(), Err(error), "{text}");
        }
    }
}

//! Spans of time: `FROM,TO` in seconds of the trace's clock, or `A%-B%` of its length.

use std::str::FromStr;

use usdtrec_format::trace::TimeRange;

/// A span of time, both ends in it.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeSpan {
    /// Times of the trace's clock, ns; `None` for an open end.
    Times(Option<u64>, Option<u64>),
    /// Parts of the time from the first to the last sample, 0 to 100.
    Percent(f64, f64),
}

impl TimeSpan {
    /// The times of this span in a trace whose samples have the times of `whole`.
    #[must_use]
    pub fn within(&self, whole: TimeRange) -> TimeRange {
        match *self {
            Self::Times(from, to) => TimeRange {
                first: from.unwrap_or(0),
                last: to.unwrap_or(u64::MAX),
            },
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
        }
    }
}

/// A text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected FROM,TO in seconds (either may be empty) or such as 10%-20%")]
pub struct TimeSpanError(
    /// The text.
    pub String,
);

impl FromStr for TimeSpan {
    type Err = TimeSpanError;

    fn from_str(text: &str) -> Result<Self, TimeSpanError> {
        let span = if text.contains('%') {
            percents(text)
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
        let range = span.within(TimeRange::new(whole.0, whole.1));
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
        ] {
            let error = TimeSpanError(text.to_owned());
            assert_eq!(text.parse::<TimeSpan>(), Err(error), "{text}");
        }
    }
}

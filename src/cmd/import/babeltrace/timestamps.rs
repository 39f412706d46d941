//! Times of events.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::super::bad_line::BadLine;

const NS: u64 = 1_000_000_000;
const EXPECTED: &str = "a time of babeltrace2, such as 1700000000.123456789";

/// How times are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum TimeForm {
    /// `12:34:56.123456789`.
    OfDay,
    /// `2026-01-31 12:34:56.123456789` (`--clock-date`).
    Date,
    /// `1700000000.123456789` (`--clock-seconds`): since 1970.
    Seconds,
    /// `00000000123456789012` (`--clock-cycles`).
    Cycles,
}

/// A time as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timestamp {
    form: TimeForm,
    ns: u64,
}

/// The times of the lines, one after the other.
#[derive(Debug, Default)]
pub(in super::super) struct Timestamps {
    form: Option<TimeForm>,
    last: u64,
}

/// Whether a text is a time.
pub(super) fn is_time(text: &str) -> bool {
    Timestamp::parse(text).is_some()
}

impl Timestamps {
    /// The time of the next event, ns. All times have the form of the first one.
    pub(super) fn time(&mut self, text: &str) -> Result<u64, BadLine> {
        let Timestamp { form, ns } =
            Timestamp::parse(text).ok_or_else(|| BadLine::field(EXPECTED, text))?;
        if *self.form.get_or_insert(form) != form {
            return Err(BadLine::field(
                "a time of the same form as the first event's",
                text,
            ));
        }
        // babeltrace2 prints events in the order of time: the day, or the offset to UTC, is another one.
        let is_local = matches!(form, TimeForm::OfDay | TimeForm::Date);
        if is_local && ns < self.last {
            return Err(BadLine::Backwards(text.to_owned()));
        }
        self.last = ns;
        Ok(ns)
    }

    /// The form of the first event's time.
    pub(in super::super) const fn form(&self) -> Option<TimeForm> {
        self.form
    }
}

impl Timestamp {
    fn parse(text: &str) -> Option<Self> {
        let timestamp = |form, ns| Self { form, ns };
        if let Some((day, time)) = text.split_once(' ') {
            let ns = date(day)?.checked_add(of_day(time)?)?;
            return Some(timestamp(TimeForm::Date, ns));
        }
        if text.contains(':') {
            return Some(timestamp(TimeForm::OfDay, of_day(text)?));
        }
        match text.split_once('.') {
            Some((seconds, ns)) => {
                let ns = digits(seconds)?
                    .checked_mul(NS)?
                    .checked_add(fraction(ns)?)?;
                Some(timestamp(TimeForm::Seconds, ns))
            }
            None => Some(timestamp(TimeForm::Cycles, digits(text)?)),
        }
    }
}

/// `HH:MM:SS.NNNNNNNNN`, ns.
fn of_day(text: &str) -> Option<u64> {
    let (clock, ns) = text.split_once('.')?;
    let mut parts = clock.split(':');
    // A leap second has the number 60.
    let mut next = |most: u64| {
        let part = parts.next().filter(|part| part.len() == 2)?;
        digits(part).filter(|number| *number <= most)
    };
    let (hours, minutes, seconds) = (next(23)?, next(59)?, next(60)?);
    if parts.next().is_some() {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * NS + fraction(ns)?)
}

/// Nine digits.
fn fraction(text: &str) -> Option<u64> {
    (text.len() == 9).then(|| digits(text))?
}

/// `YYYY-MM-DD`, ns since 1970.
fn date(text: &str) -> Option<u64> {
    let date: Date = text
        .parse()
        .ok()
        .filter(|_| text.len() == "YYYY-MM-DD".len())?;
    let midnight = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(midnight.as_nanosecond()).ok()
}

/// A number of digits alone.
fn digits(text: &str) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_times() {
        const DAY: u64 = 24 * 3600 * NS;
        for (text, form, ns) in [
            ("00:00:00.000000001", TimeForm::OfDay, 1),
            ("23:59:60.999999999", TimeForm::OfDay, DAY + NS - 1),
            ("1970-01-01 00:00:01.000000000", TimeForm::Date, NS),
            ("1972-03-01 00:00:00.000000000", TimeForm::Date, 790 * DAY),
            // date -u -d '2026-11-24 03:52:23' +%s
            (
                "2026-11-24 03:52:23.726895752",
                TimeForm::Date,
                1_795_492_343_726_895_752,
            ),
            (
                "1795492343.726895752",
                TimeForm::Seconds,
                1_795_492_343_726_895_752,
            ),
            ("18446744073.709551615", TimeForm::Seconds, u64::MAX),
            ("00000003495146732888", TimeForm::Cycles, 3_495_146_732_888),
            ("18446744073709551615", TimeForm::Cycles, u64::MAX),
        ] {
            assert_eq!(
                Timestamp::parse(text),
                Some(Timestamp { form, ns }),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_time() {
        for wrong in [
            "",
            " ",
            ".",
            ":",
            "x",
            "-5.000000000",
            "+5",
            "1.5",
            "1.0000000000",
            "18446744073.709551616",
            "18446744073709551616",
            "24:00:00.000000000",
            "1:00:00.000000000",
            "01:60:00.000000000",
            "01:00:61.000000000",
            "01:00.000000000",
            "01:00:00:00.000000000",
            "01:00:00",
            "??:??:??.?????????",
            "Error",
            "1969-12-31 00:00:00.000000000",
            "2026-13-01 00:00:00.000000000",
            "2026-00-01 00:00:00.000000000",
            "2026-01-00 00:00:00.000000000",
            "2026-01-01-01 00:00:00.000000000",
            "99999999999999999999-01-01 00:00:00.000000000",
            "9999-01-01 00:00:00.000000000",
        ] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn midnight_is_refused() {
        let mut times = Timestamps::default();
        assert_eq!(
            times.time("23:59:59.999999999").unwrap(),
            86_399_999_999_999
        );
        assert!(times.time("23:59:59.999999999").is_ok());
        let midnight = times.time("00:00:00.000000000").unwrap_err();
        assert!(midnight.ends_import());
        let other = times.time("1.000000000").unwrap_err();
        assert!(!other.ends_import());
        let mut times = Timestamps::default();
        assert_eq!(times.form(), None);
        assert!(times.time("2.000000000").is_ok());
        assert!(times.time("1.000000000").is_ok());
        assert_eq!(times.form(), Some(TimeForm::Seconds));
    }
}

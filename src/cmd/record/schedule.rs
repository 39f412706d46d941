//! `--at` and `--every`: when recordings begin.

use std::time::Duration;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};
use usdtrec_record::Moment;

use crate::cli::RecordArgs;
use crate::terminal::Usage;
use crate::units::parse_duration;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// When recordings begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// At once.
    Now,
    /// One, at a moment.
    At(Moment),
    /// Many.
    Every(Slots),
}

/// Recordings that begin at multiples of a period since midnight UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// ns, at most a day.
    period: i64,
    /// Duration of a recording.
    pub(super) length: Duration,
}

impl Schedule {
    /// By the options.
    pub(super) fn from_args(args: &RecordArgs) -> Result<Self, Usage> {
        match (&args.at, &args.every) {
            (None, None) => Ok(Self::Now),
            (Some(at), _) => {
                let now = Zoned::now();
                moment(at, &now).map(Self::At)
            }
            (None, Some(every)) => {
                check_every(args)?;
                Slots::parse(every).map(Self::Every)
            }
        }
    }
}

/// Refuses options that need one recording.
fn check_every(args: &RecordArgs) -> Result<(), Usage> {
    let capture = &args.capture;
    let reason = if args.output.as_os_str() == "-" {
        "--every needs files: standard output (-o -) holds a single trace"
    } else if !capture.command.is_empty() {
        "--every records what runs already: a command would have to be started for each recording; use -a, -p or -t"
    } else if capture.duration.is_some() {
        "--every says how long each recording is (10m/10s): --duration has no effect"
    } else if capture.delay.is_some() {
        "--every says when recordings begin: --delay has no effect"
    } else if args.switch_output.is_some() {
        "--every writes a file for each recording: --switch-output is for long ones"
    } else {
        return Ok(());
    };
    Err(Usage(reason.to_owned()))
}

/// `--at`: a time of day, a date with it, or `+` and a time from now.
fn moment(text: &str, now: &Zoned) -> Result<Moment, Usage> {
    let expected = || {
        Usage(format!(
            "--at: expected a time like 12:00:00, 2026-11-23T12:00:00Z or +30s, found {text:?}"
        ))
    };
    if let Some(from_now) = text.strip_prefix('+') {
        let time = parse_duration("--at", from_now).map_err(|_| expected())?;
        let time = i64::try_from(time.as_nanos()).map_err(|_| expected())?;
        return Ok(Moment::after(time));
    }
    let zone = now.time_zone();
    let date = if let Ok(date) = text.parse::<Timestamp>() {
        date
    } else if let Ok(date) = text.parse::<Zoned>() {
        date.timestamp()
    } else if !text.contains('-') {
        next(text.parse().map_err(|_| expected())?, now).ok_or_else(expected)?
    } else {
        let date: DateTime = text.parse().map_err(|_| expected())?;
        local(date, zone).ok_or_else(expected)?
    };
    i64::try_from(date.as_nanosecond())
        .map(Moment::Wall)
        .map_err(|_| expected())
}

/// The next moment at which the local clock shows this time.
fn next(time: Time, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    [today, today.checked_add(1.day()).ok()?]
        .into_iter()
        .filter_map(|day| local(day.to_datetime(time), now.time_zone()))
        .find(|moment| *moment >= now.timestamp())
}

fn local(date: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let date = date.to_zoned(zone.clone()).ok()?;
    Some(date.timestamp())
}

impl Slots {
    /// `--every`: `PERIOD/LENGTH`.
    fn parse(text: &str) -> Result<Self, Usage> {
        let expected = || {
            Usage(format!(
                "--every: expected a period of at most a day and a shorter time, like 10m/10s, found {text:?}"
            ))
        };
        let (period, length) = text.split_once('/').ok_or_else(expected)?;
        let time = |text| parse_duration("--every", text).map_err(|_| expected());
        let (period, length) = (time(period)?, time(length)?);
        let period = i64::try_from(period.as_nanos()).map_err(|_| expected())?;
        // Names of files have seconds.
        if length.as_nanos() >= period as u128 || !(SECOND..=DAY).contains(&period) {
            return Err(expected());
        }
        Ok(Self { period, length })
    }

    /// The first begin of a recording after a time, both ns since 1970: a multiple of the period since midnight UTC.
    pub(super) fn next(&self, time: i64) -> i64 {
        let midnight = time.div_euclid(DAY) * DAY;
        let slot = (time - midnight) / self.period + 1;
        (midnight + slot.saturating_mul(self.period)).min(midnight + DAY)
    }

    /// Number of begins from `due`, which it has, up to a later time.
    pub(super) fn passed(&self, due: i64, time: i64) -> usize {
        let mut at = due;
        // More are not counted one by one.
        const MAX_TIMES: usize = 1000;
        (0..MAX_TIMES)
            .take_while(|_| {
                let is_past = at <= time;
                at = self.next(at);
                is_past
            })
            .count()
    }
}

/// How much later than intended recording began.
pub(super) fn lateness(due: Moment) -> String {
    let late = due.elapsed();
    let begin = date(Moment::wall_now().saturating_sub(late));
    format!(
        "recording began {:.3} s after {begin}",
        late.max(0) as f64 / 1e9
    )
}

/// `2026-11-23T12:00:00Z`, to the millisecond.
pub(super) fn date(wall_ns: i64) -> String {
    let date = Timestamp::from_nanosecond(i128::from(wall_ns));
    let date = date.and_then(|date| date.round(Unit::Millisecond));
    date.map_or_else(
        |_| format!("{wall_ns} ns after 1970"),
        |date| date.to_string(),
    )
}

/// `20261123T120000Z`, as a part of a file's name.
pub(super) fn stamp(wall_ns: i64) -> String {
    stamp_in(wall_ns, "%Y%m%dT%H%M%SZ")
}

/// The same to the millisecond: `20261123T120000.123Z`.
pub(super) fn stamp_of_millisecond(wall_ns: i64) -> String {
    stamp_in(wall_ns, "%Y%m%dT%H%M%S%.3fZ")
}

fn stamp_in(wall_ns: i64, form: &str) -> String {
    Timestamp::from_nanosecond(i128::from(wall_ns)).map_or_else(
        |_| wall_ns.to_string(),
        |date| date.strftime(form).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(text: &str) -> i64 {
        let date: Timestamp = text.parse().unwrap();
        date.as_nanosecond().try_into().unwrap()
    }

    #[test]
    fn moments() {
        let now: Zoned = "2026-11-23T12:30:00+02:00[+02:00]".parse().unwrap();
        for (text, expected) in [
            ("13:00:00", "2026-11-23T11:00:00Z"),
            ("12:30", "2026-11-23T10:30:00Z"),
            ("12:29:59.5", "2026-11-24T10:29:59.5Z"),
            ("2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z"),
            ("2026-11-23 12:00:00-05:00", "2026-11-23T17:00:00Z"),
            ("2026-12-24 18:00:00", "2026-12-24T16:00:00Z"),
            ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ] {
            assert_eq!(
                moment(text, &now).unwrap(),
                Moment::Wall(wall(expected)),
                "{text}"
            );
        }
        assert!(matches!(moment("+1.5s", &now), Ok(Moment::Boot(_))));
        for wrong in [
            "",
            "+",
            "+0",
            "noon",
            "25:00",
            "2026-13-01T00:00:00Z",
            "+1y",
            "-5s",
        ] {
            assert!(moment(wrong, &now).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn slots_begin_at_midnight() {
        let slots = |text| Slots::parse(text).unwrap();
        let tens = slots("10m/10s");
        for (from, to) in [
            ("2026-11-23T12:00:00Z", "2026-11-23T12:10:00Z"),
            ("2026-11-23T12:09:59.999999999Z", "2026-11-23T12:10:00Z"),
            ("2026-11-23T23:55:00Z", "2026-11-24T00:00:00Z"),
        ] {
            assert_eq!(date(tens.next(wall(from))), to);
        }
        // 7 does not divide 1440: the last period of a day is shorter.
        let odd = slots("7m/1s");
        assert_eq!(
            date(odd.next(wall("2026-11-23T00:07:00Z"))),
            "2026-11-23T00:14:00Z"
        );
        assert_eq!(
            date(odd.next(wall("2026-11-23T23:58:00Z"))),
            "2026-11-24T00:00:00Z"
        );
        assert_eq!(
            tens.passed(wall("2026-11-23T12:00:00Z"), wall("2026-11-23T12:25:00Z")),
            3
        );
        assert_eq!(stamp(wall("2026-11-23T12:00:00Z")), "20261123T120000Z");
        for (time, stamp) in [
            ("2026-11-23T12:00:00Z", "20261123T120000.000Z"),
            ("2026-11-23T12:00:00.1239Z", "20261123T120000.123Z"),
        ] {
            assert_eq!(stamp_of_millisecond(wall(time)), stamp);
        }
        for wrong in [
            "10m",
            "10s/10s",
            "10s/1m",
            "25h/1s",
            "/1s",
            "500ms/100ms",
            "10m/",
        ] {
            assert!(Slots::parse(wrong).is_err(), "{wrong}");
        }
    }
}

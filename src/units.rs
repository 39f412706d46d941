//! Parsing of sizes and times.

use std::time::Duration;

use crate::terminal::Usage;

#[cfg(feature = "record")]
/// Parses a size: a number with `B`, `K`, `M` or `G` (powers of 1024, as in perf). A number without a unit is multiplied by
/// `plain` bytes. Errors name `option`.
pub(crate) fn parse_size(option: &str, text: &str, plain: u64) -> Result<u64, Usage> {
    let expected = || {
        Usage(format!(
            "{option}: expected a size like 512K or 4M, found {text:?}"
        ))
    };
    let (digits, unit) = split_unit(text);
    let unit = match unit {
        "" => plain,
        "B" | "b" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(unit).ok_or_else(expected)
}

/// Parses a time of more than 0: `10`, `10s`, `1.5s`, `500ms`, `20us`, `100ns`, `2m`, `1h`, `1d`. A number without a unit is
/// seconds. Errors name `option`.
pub(crate) fn parse_duration(option: &str, text: &str) -> Result<Duration, Usage> {
    let duration = parse_duration_or_zero(option, text)?;
    match duration.is_zero() {
        true => Err(expected_time(option, text)),
        false => Ok(duration),
    }
}

/// The same, or 0.
pub(crate) fn parse_duration_or_zero(option: &str, text: &str) -> Result<Duration, Usage> {
    let expected = || expected_time(option, text);
    let (digits, unit) = split_unit(text);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    match Duration::try_from_secs_f64(number * seconds) {
        // Less than a nanosecond is not 0.
        Ok(duration) if number == 0.0 || !duration.is_zero() => Ok(duration),
        _ => Err(expected()),
    }
}

fn expected_time(option: &str, text: &str) -> Usage {
    Usage(format!(
        "{option}: expected a time like 10s, 500ms or 2m, found {text:?}"
    ))
}

/// Splits a text into a number and the letters after it.
fn split_unit(text: &str) -> (&str, &str) {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    (digits, &text[digits.len()..])
}

/// The length of a time of an option, ns.
pub(crate) fn nanoseconds(option: &str, text: &str) -> anyhow::Result<u64> {
    let duration = parse_duration(option, text)?;
    Ok(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The duration of the shortest spans that `--min` and the filter ask for, ns; 0 without both. `of_filter` is that of the filter.
pub(crate) fn least_ns(min: Option<&String>, of_filter: u64) -> anyhow::Result<u64> {
    let of_min = min.map_or(Ok(0), |text| nanoseconds("--min", text))?;
    Ok(of_min.max(of_filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("-m", "8K", 1).unwrap(), 8192);
        assert_eq!(parse_size("-m", "16", 4096).unwrap(), 65536);
        assert_eq!(parse_size("-m", "4M", 4096).unwrap(), 4 << 20);
        for wrong in ["", "K", "-1", "1.5M", "18446744073709551615K", "4X"] {
            assert!(parse_size("-m", wrong, 1).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(
            parse_duration("--duration", "500ms").unwrap(),
            Duration::from_millis(500)
        );
        assert_eq!(
            parse_duration("--duration", "1.5").unwrap(),
            Duration::from_millis(1500)
        );
        assert_eq!(
            parse_duration("--duration", "2m").unwrap(),
            Duration::from_secs(120)
        );
        for wrong in ["", "s", "-1s", "0", "nan", "inf", "1e400s", "3 days"] {
            assert!(parse_duration("--duration", wrong).is_err(), "{wrong:?}");
        }
        for zero in ["0", "0s", "0ms", "0.0m"] {
            assert!(parse_duration("--after", zero).is_err(), "{zero}");
            let parsed = parse_duration_or_zero("--after", zero);
            assert_eq!(parsed, Ok(Duration::ZERO), "{zero}");
        }
        for wrong in ["", "s", "-1s", "0.01ns", "0 days"] {
            let parsed = parse_duration_or_zero("--after", wrong);
            assert!(parsed.is_err(), "{wrong:?}");
        }
    }
}

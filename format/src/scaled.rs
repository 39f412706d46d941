//! Numbers as text: durations and sizes in the unit in which they have few digits, counts of things, times of the trace's clock.

/// A duration, in nanoseconds, in the unit in which it has one to three digits before the point: `312us`, `1.23ms`, `-2.5s`.
#[must_use]
pub fn duration(nanoseconds: f64) -> String {
    scaled(nanoseconds, 1000.0, &["ns", "us", "ms"]).unwrap_or_else(|| {
        let seconds = nanoseconds / 1e9;
        format!("{}s", three_digits(seconds))
    })
}

/// A number of bytes: `17B`, `1.5KiB`, `2GiB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
        .unwrap_or_else(|| format!("{}PiB", three_digits(bytes / 1024f64.powi(5))))
}

fn scaled(mut number: f64, step: f64, units: &[&str]) -> Option<String> {
    for unit in units {
        let text = three_digits(number);
        // What rounds up to the next unit is shown in it.
        if number.abs() < step && text.trim_start_matches('-') != three_digits(step) {
            return Some(text + unit);
        }
        number /= step;
    }
    None
}

/// A number with three digits or more, without zeros at the end of a fraction.
#[must_use]
pub fn three_digits(number: f64) -> String {
    let digits = match number.abs() {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number of things, as `1 byte`, `2 bytes` or `2 processes`. `what` is the word for one of them.
#[must_use]
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = match plural_ending(number) {
        "s" if what.ends_with('s') => "es",
        ending => ending,
    };
    format!("{number} {what}{ending}")
}

/// What follows the word for one thing where there are so many: `s`, or nothing for 1.
#[must_use]
pub fn plural_ending(number: impl TryInto<u64>) -> &'static str {
    if number.try_into().is_ok_and(|number| number == 1) {
        ""
    } else {
        "s"
    }
}

/// A time, ns, as seconds, as lines of events have it and `--time` takes it: `2128.436520`.
#[must_use]
pub fn clock_seconds(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{seconds}.{:06}", rest / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_unit() {
        for (nanoseconds, text) in [
            (0.0, "0ns"),
            (999.0, "999ns"),
            (999.6, "1us"),
            (245_300.0, "245us"),
            (1_234_567.0, "1.23ms"),
            (10_001_000_000.0, "10s"),
            (59_990_000_000.0, "60s"),
            (7_200e9, "7200s"),
        ] {
            assert_eq!(duration(nanoseconds), text);
        }
        for (bytes, text) in [
            (17.0, "17B"),
            (812.0, "812B"),
            (1023.9, "1KiB"),
            (4_089_446.0, "3.9MiB"),
            (2_147_483_648.0, "2GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn only_one_thing_has_no_s() {
        let words = [0_usize, 1, 2].map(|number| counted(number, "byte"));
        assert_eq!(words, ["0 bytes", "1 byte", "2 bytes"]);
        let words = [1_usize, 2].map(|number| counted(number, "process"));
        assert_eq!(words, ["1 process", "2 processes"]);
        assert_eq!(plural_ending(1_u64), "");
    }

    #[test]
    fn digits_after_microseconds_are_left_out() {
        assert_eq!(clock_seconds(2_128_000_520_999), "2128.000520");
    }
}

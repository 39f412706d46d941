//! Durations and sizes in the unit in which they have few digits.

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
}

//! Durations, rates and shares in text.

use crate::stats::ratio::{per_second, share};

/// A duration: `10.00 s`, `245 us`.
pub(crate) fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// `count` per second over `ns` nanoseconds, with at least three digits; `-` if `ns` is 0.
pub(crate) fn rate(count: u64, ns: u64) -> String {
    match per_second(count, ns) {
        None => "-".to_owned(),
        Some(rate) if rate >= 100.0 => format!("{rate:.0}"),
        Some(rate) if rate >= 10.0 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.2}"),
    }
}

/// A part of a whole in percent with one digit: `25.0%`; something is never `0.0%`, and not all never `100.0%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    percent_of(share(part, whole))
}

/// As [`percent`], of a share from 0 to 1.
pub(crate) fn percent_of(share: f64) -> String {
    let percent = 100.0 * share;
    if share > 0.0 && percent < 0.05 {
        "<0.1%".to_owned()
    } else if share < 1.0 && percent >= 99.95 {
        ">99.9%".to_owned()
    } else {
        format!("{percent:.1}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_unit() {
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(245_300), "245.3 us");
        assert_eq!(duration(10_001_000_000), "10.00 s");
        assert_eq!(rate(103_071, 10_000_000_000), "10307");
        assert_eq!(rate(5, 10_000_000_000), "0.50");
        assert_eq!(rate(5, 0), "-");
    }

    #[test]
    fn percents_do_not_round_away() {
        assert_eq!(percent(1, 4), "25.0%");
        assert_eq!(percent(1, 100_000), "<0.1%");
        assert_eq!(percent(99_999, 100_000), ">99.9%");
        assert_eq!(percent(7, 7), "100.0%");
        assert_eq!(percent(0, 0), "0.0%");
    }
}

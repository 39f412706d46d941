//! Rates and shares in text.

use usdtrec_analysis::stats::ratio::{per_second, share};
pub use usdtrec_format::scaled::duration;
use usdtrec_format::scaled::three_digits;
use usdtrec_format::{NoTimeParts, TimePart, TimeParts};

/// `count` per second over `ns` nanoseconds, with at least three digits; `-` if `ns` is 0.
pub fn rate(count: u64, ns: u64) -> String {
    match per_second(count, ns) {
        None => "-".to_owned(),
        Some(rate) if rate >= 100.0 => format!("{rate:.0}"),
        Some(rate) if rate >= 10.0 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.2}"),
    }
}

/// A number of which three digits are known: `543000`.
pub(crate) fn about(number: u64) -> String {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    let rounded = (number / step + u64::from(number % step >= step.div_ceil(2))).checked_mul(step);
    rounded.unwrap_or(number).to_string()
}

/// How often one stands for what was recorded: `45.5`.
pub(crate) fn factor(factor: f64) -> String {
    three_digits(factor)
}

/// A part of a whole in percent with one digit: `25.0%`; something is never `0.0%`, and not all never `100.0%`.
pub fn percent(part: u64, whole: u64) -> String {
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

/// What a span was spent on: `2.10ms on cpu, 81.2ms blocked`, without what it was not spent on.
pub(crate) fn parts_in_words(parts: TimeParts) -> String {
    let all = TimePart::ALL.map(|part| (part, parts.get(part)));
    let shown = all
        .iter()
        .filter(|(part, ns)| *ns > 0 || parts.total() == 0 && *part == TimePart::OnCpu);
    let words = shown.map(|(part, ns)| format!("{} {}", duration(*ns as f64), part.spec().words));
    words.collect::<Vec<_>>().join(", ")
}

/// The same; else that it is not known, and why. `None` where waits were not recorded.
pub(crate) fn parts_or_reason(parts: Result<TimeParts, NoTimeParts>) -> Option<String> {
    match parts {
        Ok(parts) => Some(parts_in_words(parts)),
        Err(NoTimeParts::NotRecorded) => None,
        Err(reason) => Some(format!("parts not known: {}", reason.words())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(rate(103_071, 10_000_000_000), "10307");
        assert_eq!(rate(5, 10_000_000_000), "0.50");
        assert_eq!(rate(5, 0), "-");
    }

    #[test]
    fn estimates_have_three_digits() {
        let numbers = [0, 9, 999, 1004, 1005, 543_210, 999_500, u64::MAX];
        assert_eq!(
            numbers.map(about),
            [
                "0",
                "9",
                "999",
                "1000",
                "1010",
                "543000",
                "1000000",
                "18400000000000000000"
            ]
        );
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

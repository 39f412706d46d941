//! CPU lists: `0-3,6`, as sysfs and perf's `-C` write them.

use std::ops::RangeInclusive;

/// Parses a CPU list to ranges of CPU numbers, in the order of the list.
///
/// # Errors
/// The first part that is no number or range.
pub fn parse_cpu_list(list: &str) -> Result<Vec<RangeInclusive<u32>>, &str> {
    let parts = list.trim().split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let range = number(first).zip(number(last));
        let range = range.filter(|(first, last)| first <= last);
        range.map_or(Err(part), |(first, last)| Ok(first..=last))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        assert_eq!(parse_cpu_list("0-2,6"), Ok(vec![0..=2, 6..=6]));
        assert_eq!(parse_cpu_list(" 4 - 5,1\n"), Ok(vec![4..=5, 1..=1]));
        for (list, part) in [
            ("", ""),
            ("a", "a"),
            ("0,3-1", "3-1"),
            ("1,,2", ""),
            ("-1", "-1"),
            ("1-2-3", "1-2-3"),
        ] {
            assert_eq!(parse_cpu_list(list), Err(part), "{list}");
        }
    }
}

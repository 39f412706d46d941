//! Lists of CPUs: `0-3,6`.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<RangeInclusive<u32>>);

impl CpuSet {
    /// Whether a CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|range| range.contains(&cpu))
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: expected CPU numbers and ranges such as 0-3,6");
        let ranges = text.split(',').map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse().map_err(|_| wrong());
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(first..=last).ok_or_else(wrong)
        });
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let set: CpuSet = "0-2,6".parse().unwrap();
        let members: Vec<u32> = (0..9).filter(|&cpu| set.contains(cpu)).collect();
        assert_eq!(members, [0, 1, 2, 6]);
        assert!("0-4294967295".parse::<CpuSet>().unwrap().contains(7));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "1-2-3"] {
            assert!(wrong.parse::<CpuSet>().is_err(), "{wrong}");
        }
    }
}

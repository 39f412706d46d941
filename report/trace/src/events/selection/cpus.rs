//! Lists of CPUs: `0-3,6`.

use std::ops::RangeInclusive;
use std::str::FromStr;

use usdtrec_format::parse_cpu_list;

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

/// A text is not a list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected CPU numbers and ranges such as 0-3,6")]
pub struct CpuSetError(
    /// The text.
    pub String,
);

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let ranges = parse_cpu_list(text);
        ranges.map(Self).map_err(|_| CpuSetError(text.to_owned()))
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
        let error = CpuSetError("3-1".to_owned());
        assert_eq!("3-1".parse::<CpuSet>(), Err(error));
    }
}

//! Order statistics that are the confidence limits of a percentile.

use statrs::function::beta::checked_beta_reg;

use crate::diff::significance::Level;

/// Expected numbers below the percentile, and above it, of each at least so many, from which on the normal distribution approximates the
/// binomial one.
const MIN_NORMAL: f64 = 200.0;

/// The ranks, from 1 on, of the limits of a percentile of independent numbers; `None` where the limit is beyond all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitRanks {
    pub(crate) low: Option<u64>,
    pub(crate) high: Option<u64>,
}

impl LimitRanks {
    /// For the number that a share (0 to 1) of `count` numbers does not exceed.
    pub(crate) fn new(count: u64, share: f64, level: &Level) -> Self {
        Self {
            low: low_rank(count, share, level),
            // From the other end, the same with the rest.
            high: low_rank(count, 1.0 - share, level).map(|rank| count - rank + 1),
        }
    }
}

/// The greatest rank that is not above the percentile but by a chance of half the level.
fn low_rank(count: u64, share: f64, level: &Level) -> Option<u64> {
    let size = count as f64;
    let expected = size * share;
    let variance = expected * (1.0 - share);
    if expected.min(size - expected) > MIN_NORMAL {
        let normal = level.normal();
        // Corrected for skewness (Cornish and Fisher).
        let skewness = (1.0 - 2.0 * share) * (normal * normal - 1.0) / 6.0;
        // A count of `rank - 1` or fewer, with the correction for continuity: rounded up, it would be more likely than the level.
        let rank = (expected - normal * variance.sqrt() + skewness + 0.5).floor();
        return (rank >= 1.0).then_some(rank as u64);
    }
    // At most so many numbers are below the percentile.
    let is_seldom = |hits: u64| {
        let hits = hits as f64;
        checked_beta_reg(size - hits, hits + 1.0, 1.0 - share).unwrap_or(1.0) <= level.each / 2.0
    };
    let (mut seldom, mut frequent) = (0, (expected as u64).min(count));
    while seldom < frequent {
        let middle = seldom + (frequent - seldom) / 2;
        if is_seldom(middle) {
            seldom = middle + 1;
        } else {
            frequent = middle;
        }
    }
    (seldom > 0).then_some(seldom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_tables() {
        let ranks = |count, share, each| {
            let LimitRanks { low, high } = LimitRanks::new(count, share, &Level::new(each));
            (low, high)
        };
        // P(B <= 1) = 11/1024 is more than 1 %, P(B = 0) = 1/1024 is not.
        assert_eq!(ranks(10, 0.5, 0.02), (Some(1), Some(10)));
        assert_eq!(ranks(10, 0.5, 0.025), (Some(2), Some(9)));
        assert_eq!(ranks(10, 0.5, 0.001), (None, None));
        assert_eq!(ranks(100, 0.5, 0.05), (Some(40), Some(61)));
        // 0.99^526 is more than half a percent.
        assert_eq!(ranks(526, 0.99, 0.01).1, None);
        assert_eq!(ranks(528, 0.99, 0.01).1, Some(528));
    }

    /// More numbers leave a smaller part of them between the limits, also where one way of working it out gives way to the other.
    #[test]
    fn more_numbers_have_closer_limits() {
        for share in [0.5, 0.9, 0.99] {
            for each in [0.01, 1e-4] {
                let level = Level::new(each);
                let mut last = f64::INFINITY;
                for count in (1..200).map(|step| step * 300) {
                    let LimitRanks { low, high } = LimitRanks::new(count, share, &level);
                    let (Some(low), Some(high)) = (low, high) else {
                        assert_eq!(last, f64::INFINITY, "{share} {each} {count}");
                        continue;
                    };
                    assert!((low as f64) < share * count as f64 && high <= count);
                    let width = (high - low) as f64 / count as f64;
                    assert!(width < last + 2.0 / count as f64, "{share} {each} {count}");
                    last = width;
                }
                assert!(last < 0.02);
            }
        }
    }
}

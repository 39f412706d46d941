//! Chances of the binomial distribution, also for sizes that are no whole numbers.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::checked_beta_reg;

/// Expected cases, and other ones, of each at least so many, from which on the normal distribution approximates the binomial one.
const MIN_NORMAL_CASES: f64 = 200.0;

/// On which side of what is expected something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    Below,
    Above,
}

/// The chance (0 to 1) that of `size` cases, each a hit with a chance of `share`, a part of `found` or one that is farther off on its
/// side are hits. 1, so that nothing is made of it, where that cannot be worked out.
pub(crate) fn chance(size: f64, share: f64, found: f64, tail: Tail) -> f64 {
    if size * share.min(1.0 - share) > MIN_NORMAL_CASES {
        let deviation = (size * share * (1.0 - share)).sqrt();
        let apart = (found - share) * size / deviation;
        // Corrected for skewness (Cornish and Fisher).
        let skewness = (1.0 - 2.0 * share) / deviation;
        let apart = apart - skewness * (apart * apart - 1.0) / 6.0;
        let apart = match tail {
            Tail::Below => apart,
            Tail::Above => -apart,
        };
        return Normal::new(0.0, 1.0).map_or(1.0, |normal| normal.cdf(apart));
    }
    let hits = found * size;
    let chance = match tail {
        Tail::Below => checked_beta_reg(size - hits, hits + 1.0, 1.0 - share),
        Tail::Above => checked_beta_reg(hits, size - hits + 1.0, share),
    };
    chance.unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_binomial_distribution() {
        let close = |chance: f64, expected: f64| {
            assert!(
                (chance / expected - 1.0).abs() < 1e-3,
                "{chance} {expected}"
            );
        };
        close(chance(10.0, 0.5, 0.2, Tail::Below), 56.0 / 1024.0);
        close(chance(10.0, 0.5, 0.8, Tail::Above), 56.0 / 1024.0);
        close(chance(100.0, 0.99, 1.0, Tail::Above), 0.99f64.powi(100));
        close(chance(7.5, 0.5, 0.0, Tail::Below), 0.5f64.powf(7.5));
        assert!(chance(0.0, 0.5, 1.0, Tail::Above) > 0.4);
    }

    #[test]
    fn one_way_of_working_it_out_gives_way_to_the_other() {
        for side in [Tail::Below, Tail::Above] {
            let found = if side == Tail::Below { 0.987 } else { 0.993 };
            let exact = chance(19_990.0, 0.99, found, side);
            let normal = chance(20_010.0, 0.99, found, side);
            assert!((0.8..1.25).contains(&(exact / normal)), "{exact} {normal}");
        }
    }
}

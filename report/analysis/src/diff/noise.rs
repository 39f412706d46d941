//! How much figures vary within one recording, and how far two may be apart by that.
//!
//! A recording's time is cut into [`SLICES`] of one length; each slice has a rate and shares of its own. Their spread gives
//! the variance of the mean, whatever makes events come in bursts, as long as slices have little to do with each other. Where neighbours
//! resemble each other, slices count for fewer (by the correlation of neighbours, as for a first-order autoregressive series), so that what
//! drifts over a recording is not taken for steady. Means are compared by Welch's t, those of rates by their logarithms where both are known well:
//! what is more varies more. What no slice of the other comes near is different in any case.

use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, total};

/// Slices, as a number to calculate with.
const N: f64 = SLICES as f64;
/// Least variance of a count in a slice: whole events at perfectly regular times give up to this much.
const MIN_VARIANCE: f64 = 0.25;
/// Added to the correlation of neighbours, which few slices do not determine well: half of its standard error.
const CAUTION: f64 = 0.11;
/// Greatest correlation of neighbours that is reckoned with.
const MAX_CORRELATION: f64 = 0.95;

/// The standard deviation of a mean, as a part of it, up to which its logarithm is as good as normal.
const WELL_KNOWN: f64 = 0.3;
/// Degrees of freedom that are left, however much slices resemble their neighbours.
const MIN_FREEDOM: f64 = 3.0;

/// A mean over slices, with what is known of how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// Variance of the mean.
    pub(crate) variance: f64,
    /// Degrees of freedom of that variance.
    pub(crate) freedom: f64,
    /// By how much the variance is greater than that of a share of independent events; 1 for what is no share.
    pub(crate) effect: f64,
    /// The least of all slices, in the mean's unit.
    least: f64,
    /// The greatest of them.
    greatest: f64,
}

/// How far two means are apart, beside how far they could be by noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The least difference that counts.
    pub(crate) noise: f64,
    /// Ratio of the difference to it.
    pub(crate) score: f64,
}

/// Two means whose slices are all apart, as logarithms.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// From the greatest slice of the lesser one to the least of the greater one.
    width: f64,
    /// From the least to the greatest slice of the one that varies more.
    range: f64,
}

impl Mean {
    /// Of a count in a slice.
    pub(crate) fn of_counts(counts: &Counts) -> Self {
        let value = total(counts) as f64 / N;
        let residuals = counts.map(|count| count as f64 - value);
        let spread = residuals.iter().map(|one| one * one).sum::<f64>() / (N - 1.0);
        let Likeness { weight, part } = Likeness::new(&residuals);
        Self {
            value,
            variance: spread.max(MIN_VARIANCE) / N * weight,
            freedom: (N * part - 1.0).max(MIN_FREEDOM),
            effect: 1.0,
            least: counts.iter().copied().min().unwrap_or(0) as f64,
            greatest: counts.iter().copied().max().unwrap_or(0) as f64,
        }
    }

    /// Of a share, 0 to 1: `part` of `all` in each slice. `None` if too few slices have any for a variance.
    ///
    /// It is a ratio of sums, with its variance linearized; never less than that of as many independent events.
    pub(crate) fn of_share(part: &Counts, all: &Counts) -> Option<Self> {
        let (hits, count) = (total(part) as f64, total(all) as f64);
        let value = hits / count;
        let mut residuals = [0.0; SLICES];
        let pairs = part.iter().zip(all);
        for (residual, (&part, &all)) in residuals.iter_mut().zip(pairs) {
            *residual = part as f64 - value * all as f64;
        }
        // As many slices of the same weight: few, where most events are in few of them.
        let squares: f64 = all.iter().map(|&one| (one as f64).powi(2)).sum();
        let slices = count * count / squares;
        if slices.is_nan() || slices <= 2.0 {
            return None;
        }
        let squares: f64 = residuals.iter().map(|one| one * one).sum();
        let clustered = squares / (count * count) * slices / (slices - 1.0);
        let Likeness { weight, part } = Likeness::new(&residuals);
        // A share of 0 is uncertain, too.
        let likely = (hits + 1.0) / (count + 2.0);
        let independent = likely * (1.0 - likely) / count;
        let variance = (clustered * weight).max(independent);
        Some(Self {
            value,
            variance,
            freedom: (slices * part - 1.0).max((slices - 1.0).min(MIN_FREEDOM)),
            effect: variance / independent,
            least: 0.0,
            greatest: 1.0,
        })
    }

    /// In another unit.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            variance: self.variance * factor * factor,
            least: self.least * factor,
            greatest: self.greatest * factor,
            ..self
        }
    }

    /// How far it may be off.
    pub(crate) fn reach(self, level: &Level) -> f64 {
        level.student(self.freedom) * self.variance.sqrt()
    }

    /// How far two may be apart without being different: Welch's t.
    pub(crate) fn noise(self, other: Self, level: &Level) -> f64 {
        let sum = self.variance + other.variance;
        level.student(self.freedom_with(other)) * sum.sqrt()
    }

    /// How far another mean is apart, where neither is negative: if both are known well, their ratio is what is compared, as what is
    /// more varies more. The lesser of both may be greater by `lost`.
    pub(crate) fn noise_of_ratio(self, other: Self, lost: f64, level: &Level) -> Difference {
        let [lesser, greater] = if self.value <= other.value {
            [self, other]
        } else {
            [other, self]
        };
        let difference = greater.value - lesser.value;
        let most = Self {
            value: lesser.value + lost,
            ..lesser
        };
        let apart = (greater.value / most.value).ln();
        let reach = match [most, greater].map(Self::logarithm) {
            [Some(low), Some(high)] => Some(low.noise(high, level)),
            _ => None,
        };
        let separate = greater.gap_above(lesser, lost);
        let separate = separate.map(|gap| apart - gap.width + gap.range);
        let Some(reach) = reach.into_iter().chain(separate).reduce(f64::min) else {
            let noise = lesser.noise(greater, level) + lost;
            return Difference {
                noise,
                score: difference / noise,
            };
        };
        let noise = if self.value <= other.value {
            most.value * reach.exp() - self.value
        } else {
            self.value - self.value * (-reach).exp() + lost
        };
        Difference {
            noise,
            score: apart / reach,
        }
    }

    /// The gap above a lesser mean, if all slices are above all of it, and the gap is wider than the range of either. However alike
    /// neighbours are, what differs by more than either varies from end to end is no noise.
    fn gap_above(self, lesser: Self, lost: f64) -> Option<Gap> {
        let width = (self.least / (lesser.greatest + lost)).ln();
        let [one, two] = [self, lesser].map(|mean| (mean.greatest / mean.least).ln());
        let range = one.max(two);
        (lesser.least > 0.0 && width > range).then_some(Gap { width, range })
    }

    /// Its logarithm, if that is as good as normal.
    fn logarithm(self) -> Option<Self> {
        let square = self.value * self.value;
        (self.variance <= square * WELL_KNOWN * WELL_KNOWN && square > 0.0).then(|| Self {
            value: self.value.ln(),
            variance: self.variance / square,
            ..self
        })
    }

    /// Degrees of freedom of both (Welch and Satterthwaite).
    fn freedom_with(self, other: Self) -> f64 {
        let sum = self.variance + other.variance;
        let parts = [self, other].map(|mean| mean.variance * mean.variance / mean.freedom);
        sum * sum / parts.iter().sum::<f64>()
    }
}

/// How much slices resemble their neighbours.
#[derive(Clone, Copy, Debug)]
struct Likeness {
    /// By how much the variance of the mean is greater than with independent slices.
    weight: f64,
    /// What part of the degrees of freedom that variance has.
    part: f64,
}

impl Likeness {
    /// As of a first-order autoregressive series (Bartlett).
    fn new(residuals: &[f64; SLICES]) -> Self {
        let squares: f64 = residuals.iter().map(|one| one * one).sum();
        let pairs = residuals.iter().zip(&residuals[1..]);
        let products: f64 = pairs.map(|(one, next)| one * next).sum();
        let found = if squares == 0.0 {
            0.0
        } else {
            products / squares
        };
        // In short series it comes out too small (Marriott and Pope).
        let correlation = (found + (1.0 + 4.0 * found) / N + CAUTION).clamp(0.0, MAX_CORRELATION);
        let square = correlation * correlation;
        Self {
            weight: (1.0 + correlation) / (1.0 - correlation),
            part: (1.0 - square) / (1.0 + square),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_or_drifts_is_less_certain() {
        let steady = Mean::of_counts(&[50; SLICES]);
        assert_eq!(steady.value, 50.0);
        assert!(steady.variance > 0.25 / 20.0 && steady.variance < 0.5 / 20.0);
        let uneven = Mean::of_counts(&std::array::from_fn(|at| if at % 2 == 0 { 40 } else { 60 }));
        let drifting = Mean::of_counts(&std::array::from_fn(|at| if at < 10 { 40 } else { 60 }));
        assert_eq!(uneven.value, drifting.value);
        assert!(uneven.variance > 100.0 * steady.variance);
        assert!(drifting.variance > 5.0 * uneven.variance);
        assert!(drifting.freedom < uneven.freedom);
    }

    #[test]
    fn ratios_are_the_same_both_ways() {
        let level = Level::new(0.01);
        let mean = |value: u64| {
            Mean::of_counts(&std::array::from_fn(|at| {
                value + value / 8 * (at as u64 % 2)
            }))
        };
        let (few, many) = (mean(80), mean(160));
        let up = few.noise_of_ratio(many, 0.0, &level);
        let down = many.noise_of_ratio(few, 0.0, &level);
        assert!(up.score > 1.0 && (up.score - down.score).abs() < 1e-9);
        assert!(up.noise < many.value - few.value && down.noise < many.value - few.value);
        assert!(down.noise < many.value);
        // As many as were lost may have been hits.
        assert!(few.noise_of_ratio(many, 100.0, &level).score < 0.0);
        assert!(mean(0).noise_of_ratio(many, 0.0, &level).score > 1.0);
    }

    #[test]
    fn what_never_comes_near_is_different_however_it_drifts() {
        let level = Level::new(1e-4);
        let slow = Mean::of_counts(&std::array::from_fn(|at| 10 + 3 * at as u64));
        let fast = Mean::of_counts(&std::array::from_fn(|at| 1000 + 300 * at as u64));
        let near = Mean::of_counts(&std::array::from_fn(|at| 60 + 18 * at as u64));
        assert!(slow.noise_of_ratio(fast, 0.0, &level).score > 1.0);
        assert!(slow.noise_of_ratio(near, 0.0, &level).score < 1.0);
        assert!(slow.noise_of_ratio(fast, 1000.0, &level).score < 1.0);
    }

    #[test]
    fn shares_are_at_least_as_uncertain_as_independent_events() {
        let share = Mean::of_share(&[5; SLICES], &[50; SLICES]).unwrap();
        assert_eq!(share.value, 0.1);
        assert!(
            (share.variance - 0.1 * 0.9 / 1000.0).abs() < 2e-6,
            "{share:?}"
        );
        let none = Mean::of_share(&[0; SLICES], &[50; SLICES]).unwrap();
        assert!(none.variance > 0.0);
        let mut once = [0; SLICES];
        once[7] = 1000;
        assert_eq!(Mean::of_share(&once, &once), None);
        assert_eq!(Mean::of_share(&[0; SLICES], &[0; SLICES]), None);
    }

    /// Standard normal, as the sum of twelve.
    fn normal(seed: &mut u64) -> f64 {
        let uniform = || {
            *seed ^= *seed << 13;
            *seed ^= *seed >> 7;
            *seed ^= *seed << 17;
            (*seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        std::iter::repeat_with(uniform).take(12).sum::<f64>() - 6.0
    }

    /// Counts whose logarithms are an autoregressive series.
    fn series(seed: &mut u64, correlation: f64, deviation: f64) -> Counts {
        let mut state = normal(seed);
        std::array::from_fn(|_| {
            state = correlation * state + (1.0 - correlation * correlation).sqrt() * normal(seed);
            (1000.0 * (deviation * state).exp()) as u64
        })
    }

    #[test]
    fn like_series_seldom_differ() {
        let mut seed = 88_172_645_463_325_252;
        let level = Level::new(0.01);
        for [correlation, deviation, most] in [
            [0.0, 0.1, 0.01],
            [0.0, 1.0, 0.01],
            [0.3, 0.3, 0.01],
            // Slices that are alike are less to go by than it seems.
            [0.6, 0.3, 0.02],
            [0.8, 0.3, 0.03],
            [0.9, 0.3, 0.04],
        ] {
            let alarms = (0..4000).filter(|_| {
                let mut mean = || Mean::of_counts(&series(&mut seed, correlation, deviation));
                let (a, b) = (mean(), mean());
                a.noise_of_ratio(b, 0.0, &level).score > 1.0
            });
            let share = alarms.count() as f64 / 4000.0;
            assert!(share <= most, "{share} {correlation} {deviation}");
        }
    }
}

//! How much figures vary within one recording, and how far two may be apart by that.
//!
//! A recording's time is cut into [`SLICES`] of one length; each slice tells a rate and shares of its own. Their spread gives
//! the variance of the mean, whatever makes events come in bursts, as long as slices have little to do with each other. Where neighbours
//! resemble each other, slices count for fewer (by the correlation of neighbours, as for a first-order autoregressive series), so that what
//! drifts over a recording is not taken for steady. Means are compared by Welch's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::slices::{Counts, SLICES, total};

/// Slices, as a number to calculate with.
const N: f64 = SLICES as f64;
/// Least variance of a count in a slice: whole events at perfectly regular times give up to this much.
const LEAST_VARIANCE: f64 = 0.25;
/// Greatest correlation of neighbours that is reckoned with.
const MOST_CORRELATION: f64 = 0.9;

/// A mean over slices, with what is known of how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    /// Variance of the mean.
    pub(super) variance: f64,
    /// Degrees of freedom of that variance.
    pub(super) freedom: f64,
}

impl Mean {
    /// Of a count in a slice.
    pub(super) fn of_counts(counts: &Counts) -> Self {
        let value = total(counts) as f64 / N;
        let residuals = counts.map(|count| count as f64 - value);
        let spread = residuals.iter().map(|one| one * one).sum::<f64>() / (N - 1.0);
        let weight = weight_of_neighbours(&residuals);
        Self {
            value,
            variance: spread.max(LEAST_VARIANCE) / N * weight,
            freedom: (N / weight - 1.0).max(1.0),
        }
    }

    /// Of a share, 0 to 1: `part` of `all` in each slice. `None` if too few slices have any to tell how much it varies.
    ///
    /// It is a ratio of sums, with its variance linearized; never less than that of as many independent events.
    pub(super) fn of_share(part: &Counts, all: &Counts) -> Option<Self> {
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
        let weight = weight_of_neighbours(&residuals);
        // Of none, too, it is known only that it is not many.
        let likely = (hits + 1.0) / (count + 2.0);
        Some(Self {
            value,
            variance: (clustered * weight).max(likely * (1.0 - likely) / count),
            freedom: (slices / weight - 1.0).max(1.0),
        })
    }

    /// In another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            variance: self.variance * factor * factor,
            freedom: self.freedom,
        }
    }

    /// How far it may be off, but for so many cases in all (0 to 1).
    pub(super) fn reach(self, level: f64) -> f64 {
        critical(level, self.freedom) * self.variance.sqrt()
    }

    /// How far two may be apart without being different, but for so many cases in all (0 to 1): Welch's t.
    pub(super) fn noise(self, other: Self, level: f64) -> f64 {
        let sum = self.variance + other.variance;
        let freedom = sum * sum
            / (self.variance.powi(2) / self.freedom + other.variance.powi(2) / other.freedom);
        critical(level, freedom) * sum.sqrt()
    }
}

/// By how much slices that resemble their neighbours count for fewer; 1 where they do not.
fn weight_of_neighbours(residuals: &[f64; SLICES]) -> f64 {
    let squares: f64 = residuals.iter().map(|one| one * one).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let pairs = residuals.iter().zip(&residuals[1..]);
    let products: f64 = pairs.map(|(one, next)| one * next).sum();
    // In short series the correlation comes out too small by 1/N.
    let correlation = (products / squares + 1.0 / N).clamp(0.0, MOST_CORRELATION);
    (1.0 + correlation) / (1.0 - correlation)
}

/// The value that Student's t exceeds on either side in so many cases (0 to 1) together.
pub(super) fn critical(level: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| -t.inverse_cdf(level / 2.0))
}

/// The same for the normal distribution.
pub(super) fn critical_normal(level: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| -normal.inverse_cdf(level / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_tables() {
        for (level, freedom, value) in [
            (0.05, 19.0, 2.093),
            (0.01, 1.0, 63.657),
            (0.001, 38.0, 3.566),
        ] {
            assert!((critical(level, freedom) - value).abs() < 1e-3, "{value}");
        }
        assert!((critical_normal(0.05) - 1.96).abs() < 1e-3);
        assert!(critical(1e-6, 1.5).is_finite());
    }

    #[test]
    fn what_varies_or_drifts_is_less_certain() {
        let steady = Mean::of_counts(&[50; SLICES]);
        assert_eq!((steady.value, steady.variance), (50.0, 0.25 / 20.0));
        let uneven = Mean::of_counts(&std::array::from_fn(|at| if at % 2 == 0 { 40 } else { 60 }));
        let drifting = Mean::of_counts(&std::array::from_fn(|at| if at < 10 { 40 } else { 60 }));
        assert_eq!(uneven.value, drifting.value);
        assert!(uneven.variance > 100.0 * steady.variance);
        assert!(drifting.variance > 5.0 * uneven.variance);
        assert!(drifting.freedom < uneven.freedom);
    }

    #[test]
    fn shares_are_at_least_as_uncertain_as_independent_events() {
        let share = Mean::of_share(&[5; SLICES], &[50; SLICES]).unwrap();
        assert_eq!(share.value, 0.1);
        assert!((share.variance - 0.1 * 0.9 / 1000.0).abs() < 2e-6);
        let none = Mean::of_share(&[0; SLICES], &[50; SLICES]).unwrap();
        assert!(none.variance > 0.0);
        let mut once = [0; SLICES];
        once[7] = 1000;
        assert_eq!(Mean::of_share(&once, &once), None);
        assert_eq!(Mean::of_share(&[0; SLICES], &[0; SLICES]), None);
    }
}

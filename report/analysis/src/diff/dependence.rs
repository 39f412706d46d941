//! Whether what happens in a slice of time depends on what happens in others.
//!
//! Independent events give slices a known variance: that of the Poisson or the binomial distribution. Load that comes and goes gives them more, most of
//! all in the slowest changes: the coefficients of the first [`SLOW`] cosine waves over a recording. Both recordings together are tested for that by
//! the squares of these, and by those of all slices, which are as chi-squared without dependence. Where there is evidence, the variance of figures is
//! the long-run variance by the slow changes (equal-weighted cosine estimator, with Student's t of as many degrees of freedom: Lazarus, Lewis,
//! Stock and Watson, 2018).

use std::f64::consts::PI;

use crate::diff::sides::Sides;
use crate::diff::slices::SLICES;

/// Changes that are slow: those of at most so many half waves in a recording.
const SLOW: usize = 4;
/// What the slow changes of two recordings without dependence exceed in 25 of 1000 cases (chi-squared of 8 degrees).
const MAX_SLOW: f64 = 17.5;
/// What the squares of all slices exceed in 2 of 100 cases (38 degrees).
const MAX_SQUARES: f64 = 58.0;
/// The same where the greatest of several kinds of evidence counts.
const MAX_SLOW_OF_SEVERAL: f64 = 21.0;
const MAX_SQUARES_OF_SEVERAL: f64 = 64.0;
/// By how much the variance may be greater than the slow changes say, as even slower ones may be greater: of an autoregressive series in which slices
/// resemble the next by 0.7, by 2. A greater one makes up for dependence that is not found; with this one, like recordings under such load are called
/// different in 2 of 100 cases at most (`benches/differences`).
const BIAS: f64 = 3.5;
/// The same of what exceeds the variance of independent numbers, where that is known.
const EXCESS_BIAS: f64 = 2.5;
/// The same of events at regular times, which have less variance than independent ones.
const REGULAR_BIAS: f64 = 1.2;

/// By how much each slice is off.
pub(crate) type Deviations = [f64; SLICES];

/// Evidence that slices of two recordings depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dependence {
    bias: f64,
}

impl Dependence {
    /// Degrees of freedom of a variance.
    pub(crate) const FREEDOM: f64 = SLOW as f64;
    /// The dependence of events at regular times.
    pub(crate) const REGULAR: Self = Self { bias: REGULAR_BIAS };

    /// `None` without evidence in deviations, of which there may be several kinds, as multiples of the standard deviation that independent events have.
    pub(crate) fn find<const KINDS: usize>(evidence: Sides<[Deviations; KINDS]>) -> Option<Self> {
        let greatest = |measure: fn(&Deviations) -> f64| {
            let of_side =
                |kinds: &[Deviations; KINDS]| kinds.iter().map(measure).fold(0.0, f64::max);
            of_side(&evidence.a) + of_side(&evidence.b)
        };
        let (max_slow, max_squares) = match KINDS {
            0 | 1 => (MAX_SLOW, MAX_SQUARES),
            _ => (MAX_SLOW_OF_SEVERAL, MAX_SQUARES_OF_SEVERAL),
        };
        let is_found = greatest(slow) > max_slow || greatest(squares) > max_squares;
        is_found.then_some(Self { bias: BIAS })
    }

    /// The long-run variance of a slice: at least that which slices show anyway.
    pub(crate) fn variance(self, deviations: &Deviations) -> f64 {
        let long_run = self.bias * slow(deviations) / Self::FREEDOM;
        long_run.max(squares(deviations) / (SLICES as f64 - 1.0))
    }
}

impl Dependence {
    /// The long-run variance of a slice that would have the variance `independent` if its numbers did not depend on others: independent numbers give slow
    /// changes their share of it, so that only what is more may be underestimated.
    pub(crate) fn variance_beside(self, deviations: &Deviations, independent: f64) -> f64 {
        let excess = slow(deviations) / Self::FREEDOM - independent;
        let long_run = independent + EXCESS_BIAS * excess.max(0.0);
        long_run.max(squares(deviations) / (SLICES as f64 - 1.0))
    }
}

/// The sum of all squares.
pub(crate) fn squares(deviations: &Deviations) -> f64 {
    deviations.iter().map(|one| one * one).sum()
}

/// The sum of the squares of the slowest changes.
fn slow(deviations: &Deviations) -> f64 {
    let slices = SLICES as f64;
    let change = |half_waves: usize| {
        let wave = |at: usize| (PI * half_waves as f64 * (at as f64 + 0.5) / slices).cos();
        let deviations = deviations.iter().enumerate();
        let sum: f64 = deviations.map(|(at, one)| one * wave(at)).sum();
        sum * sum * 2.0 / slices
    };
    (1..=SLOW).map(change).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(of: Deviations) -> Option<Dependence> {
        Dependence::find(Sides { a: [of], b: [of] })
    }

    #[test]
    fn what_drifts_is_evidence_and_what_alternates_is_not() {
        let alternating: Deviations = std::array::from_fn(|at| at as f64 % 2.0 * 2.0 - 1.0);
        assert_eq!(find(alternating), None);
        let drifting: Deviations = std::array::from_fn(|at| (at as f64 - 9.5) / 6.0);
        assert!(squares(&drifting) < squares(&alternating));
        let dependence = Dependence { bias: BIAS };
        assert_eq!(find(drifting), Some(dependence));
        assert_eq!(find(drifting.map(|one| one * 0.5)), None);
        // More than by chance, but not in slow changes.
        let uneven = alternating.map(|one| one * 1.5);
        assert_eq!(find(uneven), Some(dependence));
        let variance = |of: &Deviations| dependence.variance(of);
        assert_eq!(variance(&uneven), 1.5 * 1.5 * 20.0 / 19.0);
        assert!(variance(&drifting) > 2.0 * squares(&drifting) / 19.0);
        // Of what drifts no more than independent numbers may, the variance is theirs.
        let beside = |independent| dependence.variance_beside(&drifting, independent);
        assert_eq!(beside(100.0), 100.0);
        assert!(beside(1.0) > 1.0 && beside(1.0) < variance(&drifting));
    }
}

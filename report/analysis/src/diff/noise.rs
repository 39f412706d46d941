//! How much figures vary within one recording, and how far two may be apart by that.
//!
//! A recording's time is cut into [`SLICES`] of one length; each slice has a rate and shares of its own. Independent events have the variance of the
//! Poisson and of the binomial distribution; where there is evidence that slices depend on each other ([`Dependence`]), these give the variance of
//! the mean, whatever makes events come in bursts. Means are compared by Welch's t, those of rates by their logarithms where both are known well:
//! what is more varies more. What no slice of the other comes near is different in any case.

use crate::diff::dependence::{Dependence, Deviations, squares};
use crate::diff::difference::{Difference, DifferenceScale, Uncertain};
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, SliceParts, total};

/// Slices, as a number to calculate with.
const N: f64 = SLICES as f64;
/// Least variance of a count in a slice: whole events at perfectly regular times give up to this much.
const MIN_VARIANCE: f64 = 0.25;
/// What the squares of slices of independent events are less than in 1 of 1000 cases (chi-squared of 19 degrees): events are at regular times then.
const MIN_SQUARES: f64 = 5.4;
/// The standard deviation of a mean, as a part of it, up to which its logarithm is as good as normal.
const WELL_KNOWN: f64 = 0.3;
/// Slices with events below which how they vary is not known.
pub(crate) const MIN_SLICES: usize = 3;

/// A mean over slices, with what is known of how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// Variance of the mean.
    pub(crate) variance: f64,
    /// Degrees of freedom of that variance.
    pub(crate) freedom: f64,
    /// The least of all slices, in the mean's unit.
    least: f64,
    /// The greatest of them.
    greatest: f64,
}

impl Mean {
    /// With its variance, which was found as that of slices if these depend on each other.
    pub(crate) fn new(value: f64, variance: f64, dependence: Option<Dependence>) -> Self {
        Self {
            value,
            variance,
            freedom: dependence.map_or(f64::INFINITY, |_| Dependence::FREEDOM),
            least: 0.0,
            greatest: f64::INFINITY,
        }
    }

    /// Of counts in a slice that is recorded wholly.
    pub(crate) fn of_counts(counts: Sides<SlicedCounts<'_>>) -> Sides<Self> {
        let is_regular = |counts: &SlicedCounts<'_>| squares(&counts.deviations) < MIN_SQUARES;
        let found = Dependence::find(counts.each().map(|counts| [counts.deviations]));
        let is_any = counts.each().any(is_regular);
        let dependence = found.or(is_any.then_some(Dependence::REGULAR));
        counts.map(|counts| {
            let value = counts.value;
            let independent = if is_regular(&counts) { 0.0 } else { value };
            let variance = dependence.map_or(value, |found| {
                (found.variance(&counts.deviations) * value).max(independent)
            });
            let events = (variance * counts.part).max(MIN_VARIANCE);
            let rates = || counts.rates();
            Self {
                least: rates().reduce(f64::min).unwrap_or(0.0),
                greatest: rates().reduce(f64::max).unwrap_or(0.0),
                ..Self::new(value, events / (N * counts.part * counts.part), dependence)
            }
        })
    }

    /// Of shares, 0 to 1: `parts` of `all` in each slice. `None` if too few slices have any.
    ///
    /// Each is a ratio of sums, with its variance linearized; never less than that of as many independent events.
    pub(crate) fn of_shares(parts: Sides<&Counts>, all: Sides<&Counts>) -> Option<Sides<Self>> {
        let shares = Sides {
            a: SlicedShare::new(parts.a, all.a)?,
            b: SlicedShare::new(parts.b, all.b)?,
        };
        let dependence = Dependence::find(shares.each().map(|share| [share.deviations]));
        Some(shares.map(|share| share.mean(dependence)))
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

    /// By how much another one is greater: Welch's t.
    pub(crate) fn difference(self, other: Self, level: &Level) -> Difference {
        let reach = self.reach_with(other, level);
        Difference {
            of: Uncertain {
                value: other.value - self.value,
                below: Some(reach),
                above: Some(reach),
            },
            scale: DifferenceScale::Linear,
        }
    }

    /// By how much another one is greater, where neither is negative: if both are known well, their ratio is what is compared, as what is
    /// more varies more. Each of both may be greater by what was lost.
    pub(crate) fn difference_of_rates(
        self,
        other: Self,
        lost: Sides<f64>,
        level: &Level,
    ) -> Difference {
        let logarithms = self.logarithm().zip(other.logarithm());
        let reach = logarithms.map(|(a, b)| a.reach_with(b, level));
        let gap_above = other.gap_above(self, lost.a);
        let gap_below = self.gap_above(other, lost.b);
        if reach.or(gap_above).or(gap_below).is_none() {
            let mut linear = self.difference(other, level);
            linear.of.below = linear.of.below.map(|below| below + lost.a);
            linear.of.above = linear.of.above.map(|above| above + lost.b);
            return linear;
        }
        let limit = |lost: f64, mean: Self, separate: Option<f64>| {
            let limit = reach.map(|reach| reach + (lost / mean.value).ln_1p());
            limit.into_iter().chain(separate).reduce(f64::min)
        };
        Difference {
            of: Uncertain {
                value: (other.value / self.value).ln(),
                below: limit(lost.a, self, gap_above),
                above: limit(lost.b, other, gap_below),
            },
            scale: DifferenceScale::Ratio,
        }
    }

    fn reach_with(self, other: Self, level: &Level) -> f64 {
        let sum = self.variance + other.variance;
        self.critical_with(other, level) * sum.sqrt()
    }

    /// What Student's t of the difference to another mean exceeds by chance.
    pub(crate) fn critical_with(self, other: Self, level: &Level) -> f64 {
        level.student(self.freedom_with(other))
    }

    /// How far the ratio to a lesser mean may be off, if all slices are above all of it, and the gap is wider than the range of either. However
    /// alike neighbours are, what differs by more than either varies from end to end is no noise.
    fn gap_above(self, lesser: Self, lost: f64) -> Option<f64> {
        let width = (self.least / (lesser.greatest + lost)).ln();
        let [one, two] = [self, lesser].map(|mean| (mean.greatest / mean.least).ln());
        let range = one.max(two);
        let apart = (self.value / lesser.value).ln();
        (lesser.least > 0.0 && width > range).then_some(apart - width + range)
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

/// The events of each slice, and the part of it in which they were recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlicedCounts<'c> {
    counts: &'c Counts,
    recorded: &'c SliceParts,
    /// The part of all slices.
    part: f64,
    /// The mean in a slice that is recorded wholly.
    value: f64,
    /// Of counts, as multiples of the standard deviation that independent events give.
    deviations: Deviations,
}

impl<'c> SlicedCounts<'c> {
    /// Of slices of which some part was recorded.
    pub(crate) fn new(counts: &'c Counts, recorded: &'c SliceParts) -> Self {
        let part = (recorded.iter().sum::<f64>() / N).max(f64::MIN_POSITIVE);
        let value = total(counts) as f64 / N / part;
        let unit = (value * part).max(f64::MIN_POSITIVE).sqrt();
        Self {
            counts,
            recorded,
            part,
            value,
            deviations: std::array::from_fn(|at| (counts[at] as f64 - value * recorded[at]) / unit),
        }
    }

    /// What each slice would have if it was recorded wholly.
    fn rates(&self) -> impl Iterator<Item = f64> {
        let both = self.counts.iter().zip(self.recorded);
        let recorded = both.filter(|(_, part)| **part > 0.0);
        recorded.map(|(count, part)| *count as f64 / part)
    }
}

/// A share of the events of each slice.
pub(crate) struct SlicedShare {
    value: f64,
    /// Variance of the share, if events are independent.
    independent: f64,
    /// Of the ratio estimator, as multiples of the standard deviation that independent events give.
    pub(crate) deviations: Deviations,
}

impl SlicedShare {
    /// `None` if too few slices have any events.
    pub(crate) fn new(part: &Counts, all: &Counts) -> Option<Self> {
        if all.iter().filter(|count| **count > 0).count() < MIN_SLICES {
            return None;
        }
        let (hits, count) = (total(part) as f64, total(all) as f64);
        let value = hits / count;
        // A share of 0 is uncertain, too.
        let likely = (hits + 1.0) / (count + 2.0);
        let independent = likely * (1.0 - likely) / count;
        let unit = (independent * count * count / N).sqrt();
        Some(Self {
            value,
            independent,
            deviations: std::array::from_fn(|at| (part[at] as f64 - value * all[at] as f64) / unit),
        })
    }

    fn mean(self, dependence: Option<Dependence>) -> Mean {
        let more = dependence.map_or(1.0, |found| found.variance(&self.deviations).max(1.0));
        Mean::new(self.value, self.independent * more, dependence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: SliceParts = [1.0; SLICES];

    fn means(a: &Counts, b: &Counts) -> Sides<Mean> {
        let [a, b] = [a, b].map(|counts| SlicedCounts::new(counts, &WHOLE));
        Mean::of_counts(Sides { a, b })
    }

    #[test]
    fn what_is_not_recorded_is_no_change_of_the_rate() {
        // A fifth is recorded, of some slices less.
        let recorded: SliceParts = std::array::from_fn(|at| 0.1 + 0.2 * (at % 2) as f64);
        let counts = recorded.map(|part| (1000.0 * part) as u64 + 5);
        let whole = [1025; SLICES];
        let means = Mean::of_counts(Sides {
            a: SlicedCounts::new(&counts, &recorded),
            b: SlicedCounts::new(&whole, &WHOLE),
        });
        assert!((means.a.value - means.b.value).abs() < 1e-9, "{means:?}");
        assert!(means.a.variance > means.b.variance);
        let lost = Sides { a: 0.0, b: 0.0 };
        let found = means
            .a
            .difference_of_rates(means.b, lost, &Level::new(0.01));
        assert!(!is_beyond(found));
    }

    #[test]
    fn what_varies_or_drifts_is_less_certain() {
        // As regular as events can be.
        let steady = means(&[50; SLICES], &[50; SLICES]).a;
        assert_eq!((steady.value, steady.variance), (50.0, MIN_VARIANCE / N));
        let random: Counts = std::array::from_fn(|at| if at % 2 == 0 { 43 } else { 57 });
        let random = means(&random, &random).a;
        assert_eq!((random.variance, random.freedom), (50.0 / N, f64::INFINITY));
        let uneven: Counts = std::array::from_fn(|at| if at % 2 == 0 { 35 } else { 65 });
        let uneven = means(&uneven, &uneven).a;
        assert!(uneven.variance > 4.0 * random.variance);
        let drifting: Counts = std::array::from_fn(|at| if at < 10 { 35 } else { 65 });
        let drifting = means(&drifting, &drifting).a;
        assert!(drifting.variance > 2.0 * uneven.variance);
    }

    fn is_beyond(found: Difference) -> bool {
        found.of.value.abs() > found.reach().unwrap()
    }

    #[test]
    fn ratios_are_the_same_both_ways() {
        let level = Level::new(0.01);
        let counts = |value: u64| std::array::from_fn(|at| value + value / 8 * (at as u64 % 2));
        let Sides { a: few, b: many } = means(&counts(80), &counts(160));
        let lost = |a| Sides { a, b: 0.0 };
        let up = few.difference_of_rates(many, lost(0.0), &level);
        let down = many.difference_of_rates(few, lost(0.0), &level);
        assert_eq!((up.of.value, up.of.below), (-down.of.value, down.of.above));
        assert!(is_beyond(up) && is_beyond(down) && up.scale == DifferenceScale::Ratio);
        // As many as were lost may have been hits.
        assert!(!is_beyond(few.difference_of_rates(
            many,
            lost(100.0),
            &level
        )));
        let Sides { a: none, b: many } = means(&[0; SLICES], &counts(160));
        assert!(is_beyond(none.difference_of_rates(many, lost(0.0), &level)));
    }

    #[test]
    fn what_never_comes_near_is_different_however_it_drifts() {
        let level = Level::new(1e-4);
        let slow = std::array::from_fn(|at| 10 + 3 * at as u64);
        let is_beyond = |factor: u64, a: f64| {
            let means = means(&slow, &slow.map(|count| count * factor));
            let lost = Sides { a, b: 0.0 };
            is_beyond(means.a.difference_of_rates(means.b, lost, &level))
        };
        assert!(is_beyond(100, 0.0));
        assert!(!is_beyond(6, 0.0));
        assert!(!is_beyond(100, 1000.0));
    }

    #[test]
    fn shares_are_at_least_as_uncertain_as_independent_events() {
        let shares = |part: &Counts, all: &Counts| {
            let both = Mean::of_shares(Sides { a: part, b: part }, Sides { a: all, b: all });
            both.map(|both| both.a)
        };
        let share = shares(&[5; SLICES], &[50; SLICES]).unwrap();
        assert_eq!(share.value, 0.1);
        assert!(
            (share.variance - 0.1 * 0.9 / 1000.0).abs() < 2e-6,
            "{share:?}"
        );
        assert!(shares(&[0; SLICES], &[50; SLICES]).unwrap().variance > 0.0);
        let drifting = std::array::from_fn(|at| at as u64);
        assert!(shares(&drifting, &[50; SLICES]).unwrap().variance > 10.0 * share.variance);
        let mut seldom = [0; SLICES];
        (seldom[7], seldom[8]) = (1000, 3);
        assert_eq!(shares(&seldom, &seldom), None);
        // However many more there are in one slice.
        seldom[9] = 1;
        assert!(shares(&seldom, &seldom).is_some());
        assert_eq!(shares(&[0; SLICES], &[0; SLICES]), None);
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
            [0.7, 0.3, 0.01],
            [0.8, 0.3, 0.02],
            [0.9, 0.3, 0.04],
        ] {
            let alarms = (0..4000).filter(|_| {
                let mut series = || series(&mut seed, correlation, deviation);
                let Sides { a, b } = means(&series(), &series());
                is_beyond(a.difference_of_rates(b, Sides { a: 0.0, b: 0.0 }, &level))
            });
            let share = alarms.count() as f64 / 4000.0;
            assert!(share <= most, "{share} {correlation} {deviation}");
        }
    }
}

//! Numbers in ascending order, and how far their percentiles may be off.
//!
//! The limits of a percentile are those of order statistics: exact for independent numbers of any distribution. Where there is evidence that numbers of one
//! time resemble each other ([`Dependence`]), limits are at least as far off as the percentiles of the slices say (sectioning, as of Asmussen and Glynn).
//! Evidence is in the ranks of all numbers, as of the test of Kruskal and Wallis, in the share of numbers up to the percentile, and in how many
//! numbers there are.

use std::collections::BTreeMap;

use crate::diff::binomial::LimitRanks;
use crate::diff::dependence::{Dependence, Deviations};
use crate::diff::difference::{DifferenceScale, Uncertain};
use crate::diff::noise::{MIN_SLICES, Mean, SlicedShare};
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, add, total};
use crate::stats::distribution::{Distribution, Extremes};
use crate::stats::frequency::Frequency;
use crate::stats::number::{Number, Scalar};

/// Slices below which nothing is said of a drift.
const MIN_DRIFT_SLICES: f64 = 6.0;

/// Numbers in ascending order, each with its count in each slice.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub(crate) numbers: Vec<RankedNumber>,
    /// The greatest, exactly.
    pub(crate) most: Scalar,
    /// Whether numbers are as they were; else within 1/256.
    pub(crate) exact: bool,
    /// Counts of all values.
    pub(crate) all: Counts,
}

/// A number, and how often it occurred in each slice.
#[derive(Clone, Debug)]
pub(crate) struct RankedNumber {
    pub(crate) number: Scalar,
    pub(crate) counts: Counts,
}

/// A percentile of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedPercentile<'r> {
    of: &'r Ranked,
    share: f64,
    pub(crate) value: Scalar,
    /// The percentile of each slice; `None` for slices without numbers.
    sections: [Option<f64>; SLICES],
    /// What may show that slices depend on each other.
    pub(crate) evidence: [Deviations; 3],
}

impl Ranked {
    /// The numbers of all slices together; `None` without numbers.
    pub(crate) fn new<N: Number>(mut slices: Vec<Distribution<N>>) -> Option<Self> {
        let mut whole = Distribution::default();
        for slice in &mut slices {
            slice.settle();
            whole.merge(slice.clone());
        }
        let Extremes { least, greatest } = whole.ends()?;
        let exact = whole.values().is_some();
        let mut numbers: BTreeMap<N, Counts> = BTreeMap::new();
        let mut all = [0; SLICES];
        for (at, slice) in slices.iter().enumerate().take(SLICES) {
            for Frequency { value, count } in slice.counts() {
                let number = if exact {
                    value
                } else {
                    N::middle(value.bucket()).clamp(least, greatest)
                };
                numbers.entry(number).or_insert([0; SLICES])[at] += count;
                all[at] += count;
            }
        }
        let numbers = numbers.into_iter();
        Some(Self {
            numbers: numbers
                .map(|(number, counts)| RankedNumber {
                    number: number.scalar(),
                    counts,
                })
                .collect(),
            most: greatest.scalar(),
            exact,
            all,
        })
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        total(&self.all)
    }

    /// How often a number came.
    pub(crate) fn counts(&self, number: Scalar) -> Counts {
        let mut known = self.numbers.iter();
        let found = known.find(|known| known.number == number);
        found.map_or([0; SLICES], |known| known.counts)
    }

    /// Whether all numbers are greater than 0.
    pub(crate) fn are_positive(&self) -> bool {
        let least = self.numbers.first();
        least.is_some_and(|least| least.number.approximate() > 0.0)
    }

    /// The least number that at least so many thousandths of all do not exceed.
    pub(crate) fn percentile(&self, thousandths: u32) -> Option<RankedPercentile<'_>> {
        let rank_of = |count: u64| (u128::from(count) * u128::from(thousandths)).div_ceil(1000);
        let ranks = self.all.map(|count| rank_of(count) as u64);
        let rank = rank_of(self.count()) as u64;
        let mut through = [0; SLICES];
        let mut sections = [None; SLICES];
        let mut found = None;
        for RankedNumber { number, counts } in &self.numbers {
            add(&mut through, counts);
            for (section, (count, rank)) in sections.iter_mut().zip(through.iter().zip(ranks)) {
                if section.is_none() && *count >= rank && rank > 0 {
                    *section = Some(number.approximate());
                }
            }
            if found.is_none() && total(&through) >= rank {
                found = Some((*number, through));
            }
        }
        let (value, through) = found?;
        let share = SlicedShare::new(&through, &self.all);
        Some(RankedPercentile {
            of: self,
            share: f64::from(thousandths) / 1000.0,
            value,
            sections,
            evidence: [
                self.ranks(),
                share.map_or([0.0; SLICES], |share| share.deviations),
                self.numbers_of_slices(),
            ],
        })
    }

    /// How much the mean rank of each slice deviates from that of all numbers, as a multiple of what independent ones give.
    fn ranks(&self) -> Deviations {
        let count = self.count() as f64;
        let (mut before, mut variance) = (0.0, 0.0);
        let mut sums = [0.0; SLICES];
        for number in &self.numbers {
            let here = total(&number.counts) as f64;
            let rank = (before + here / 2.0) / count - 0.5;
            for (sum, count) in sums.iter_mut().zip(number.counts) {
                *sum += rank * count as f64;
            }
            variance += rank * rank * here;
            before += here;
        }
        let unit = (variance / SLICES as f64).sqrt().max(f64::MIN_POSITIVE);
        sums.map(|sum| sum / unit)
    }

    /// How much the number of numbers in each slice deviates from the mean, as a multiple of what independent ones give: load shows in it, too.
    fn numbers_of_slices(&self) -> Deviations {
        let mean = self.count() as f64 / SLICES as f64;
        let unit = mean.sqrt().max(f64::MIN_POSITIVE);
        self.all.map(|count| (count as f64 - mean) / unit)
    }

    /// The number of a rank, from 1 on.
    fn at(&self, rank: u64) -> Option<Scalar> {
        let mut reached = 0;
        let mut numbers = self.numbers.iter();
        let found = numbers.find(|number| {
            reached += total(&number.counts);
            reached >= rank
        });
        found.map(|found| found.number)
    }

    /// How much numbers go up (1) or down (-1) all the time, and no other way: the rank correlation of the medians of slices with time.
    pub(crate) fn drift(&self) -> f64 {
        let medians: Vec<usize> = (0..SLICES)
            .filter_map(|slice| self.median_of(slice))
            .collect();
        let count = medians.len() as f64;
        if count < MIN_DRIFT_SLICES {
            return 0.0;
        }
        let rank = |median: &usize| {
            let less = medians.iter().filter(|other| *other < median).count();
            let same = medians.iter().filter(|other| *other == median).count();
            less as f64 + (same as f64 - 1.0) / 2.0
        };
        let middle = (count - 1.0) / 2.0;
        let (mut products, mut squares, mut times) = (0.0, 0.0, 0.0);
        for (time, median) in medians.iter().enumerate() {
            let (rank, time) = (rank(median) - middle, time as f64 - middle);
            products += rank * time;
            squares += rank * rank;
            times += time * time;
        }
        if squares == 0.0 {
            0.0
        } else {
            products / (squares * times).sqrt()
        }
    }

    /// Index of the median of a slice.
    fn median_of(&self, slice: usize) -> Option<usize> {
        let count = self.all[slice];
        let mut reached = 0;
        let is_median = |number: &RankedNumber| {
            reached += number.counts[slice];
            count > 0 && 2 * reached >= count
        };
        self.numbers.iter().position(is_median)
    }
}

impl RankedPercentile<'_> {
    /// How far it may be off on a scale, and at least so far.
    fn uncertain(&self, scale: DifferenceScale, least: f64, level: &Level) -> Uncertain {
        let value = scale.of(self.value.approximate());
        let ranks = LimitRanks::new(self.of.count(), self.share, level);
        let is_known = self.sections.iter().flatten().count() >= MIN_SLICES;
        let distance = |rank: Option<u64>| {
            let limit = scale.of(self.of.at(rank?)?.approximate());
            is_known.then(|| (limit - value).abs().max(least))
        };
        Uncertain {
            value,
            below: distance(ranks.low),
            above: distance(ranks.high),
        }
    }

    /// The variance on a scale of a percentile of independent numbers, as the limits of order statistics say; 0 if one is not known.
    fn independent(&self, scale: DifferenceScale, level: &Level) -> f64 {
        let ranks = LimitRanks::new(self.of.count(), self.share, level);
        let limit = |rank: Option<u64>| Some(scale.of(self.of.at(rank?)?.approximate()));
        let width = limit(ranks.high).zip(limit(ranks.low));
        let deviation = width.map(|(high, low)| (high - low) / (2.0 * level.normal()));
        let deviation = deviation.filter(|deviation| deviation.is_finite());
        deviation.map_or(0.0, |deviation| deviation * deviation)
    }

    /// With the variance that the percentiles of slices have on a scale, where independent numbers would give the percentile another one.
    fn sectioned(&self, scale: DifferenceScale, dependence: Dependence, independent: f64) -> Mean {
        let value = scale.of(self.value.approximate());
        let sections = self.sections;
        let deviations = sections.map(|one| one.map_or(0.0, |one| scale.of(one) - value));
        let count = self.of.count() as f64;
        let weights = self.of.all.map(|one| (one as f64 / count).powi(2));
        let weight: f64 = weights.iter().sum();
        let variance = dependence.variance_beside(&deviations, independent / weight) * weight;
        Mean::new(value, variance, Some(dependence))
    }
}

/// How far percentiles of two recordings may be off on a scale.
pub(crate) fn uncertain(
    of: Sides<&RankedPercentile<'_>>,
    scale: DifferenceScale,
    level: &Level,
) -> Sides<Uncertain> {
    let Some(found) = Dependence::find(of.map(|one| one.evidence)) else {
        return of.map(|one| one.uncertain(scale, 0.0, level));
    };
    let independent = of.map(|one| one.independent(scale, level));
    let means = Sides {
        a: of.a.sectioned(scale, found, independent.a),
        b: of.b.sectioned(scale, found, independent.b),
    };
    // Like recordings are under like loads: both say together how much that adds, and which of both counts for more is known without it.
    let shares = match independent.a + independent.b > 0.0 {
        true => independent.map(|variance| Mean::new(0.0, variance, Some(found))),
        false => means,
    };
    let critical = shares.a.critical_with(shares.b, level);
    let reach = |mean: Mean| critical * mean.variance.sqrt();
    Sides {
        a: of.a.uncertain(scale, reach(means.a), level),
        b: of.b.uncertain(scale, reach(means.b), level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::number::Integer;

    fn ranked(number: impl Fn(usize) -> i128, count: usize) -> Ranked {
        let mut slices = vec![Distribution::<Integer>::default(); SLICES];
        for at in 0..count {
            slices[at * SLICES / count].add(Integer(number(at)));
        }
        Ranked::new(slices).unwrap()
    }

    /// The median and its limits.
    fn median(of: &Ranked) -> (f64, f64, f64) {
        let median = of.percentile(500).unwrap();
        let both = Sides {
            a: &median,
            b: &median,
        };
        let found = uncertain(both, DifferenceScale::Linear, &Level::new(0.01)).a;
        let value = found.value;
        (
            value - found.below.unwrap(),
            value,
            value + found.above.unwrap(),
        )
    }

    #[test]
    fn what_drifts_has_wide_limits() {
        let mixed = ranked(|at| (at * 7919 % 10_007) as i128, 10_007);
        let (low, middle, high) = median(&mixed);
        assert!(low < middle && middle < high);
        assert!(high - low < 300.0, "{low} {high}");
        let counting = ranked(|at| at as i128, 10_007);
        let (low, same, high) = median(&counting);
        assert_eq!(same, middle);
        assert!(low < 2000.0 && high > 8000.0);
        assert!(mixed.drift().abs() < 0.6);
        assert_eq!(counting.drift(), 1.0);
    }

    #[test]
    fn limits_of_independent_numbers_are_those_of_order_statistics() {
        let mixed = |count: usize| ranked(move |at| (at * 7919 % count) as i128, count);
        // The 460th and the 541st of a thousand.
        let (low, _, high) = median(&mixed(1000));
        assert!((456.0..461.0).contains(&low), "{low}");
        assert!((538.0..543.0).contains(&high), "{high}");
        // 100 numbers have no upper limit for p99: the greatest is below it in 37 of 100 cases.
        let few = mixed(100);
        let few = few.percentile(990).unwrap();
        let found = few.uncertain(DifferenceScale::Linear, 0.0, &Level::new(0.01));
        assert!(found.below.is_some_and(|below| below > 1.0));
        assert_eq!(found.above, None);
    }

    #[test]
    fn one_number_has_no_interval() {
        let same = ranked(|_| 5, 1000);
        assert_eq!(median(&same), (5.0, 5.0, 5.0));
        assert_eq!(same.counts(Scalar::Integer(Integer(5))), [50; SLICES]);
        assert_eq!(same.drift(), 0.0);
        assert!(Ranked::new(Vec::<Distribution<Integer>>::new()).is_none());
    }
}

//! Numbers in ascending order, and the confidence intervals of their percentiles.
//!
//! A number may be the percentile if the share of numbers up to it may be that of the percentile: a test of the binomial distribution, exact
//! where numbers are few. Numbers of one time resemble each other, so that they count for fewer: for as many as that share, from slice to
//! slice, varies like (Korn's and Graubard's effective sample size; the test is inverted as Francisco and Fuller do). With independent numbers
//! these are the intervals of order statistics. An interval is open on a side where no number is too far off.

use std::collections::BTreeMap;

use crate::diff::binomial::{Tail, chance};
use crate::diff::noise::Mean;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, add, total};
use crate::stats::distribution::{Distribution, Extremes};
use crate::stats::frequency::Frequency;
use crate::stats::number::{Number, Scalar};

/// Slices below which nothing is said of a drift.
const MIN_SLICES: f64 = 6.0;

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

/// A percentile, and its confidence interval; open where there are too few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QuantileInterval {
    pub(crate) value: Scalar,
    pub(crate) low: Option<Scalar>,
    pub(crate) high: Option<Scalar>,
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

    /// The least number that at least so many thousandths of all do not exceed, and its interval.
    pub(crate) fn quantile(&self, thousandths: u32, level: &Level) -> Option<QuantileInterval> {
        let count = self.count();
        let rank = (u128::from(count) * u128::from(thousandths)).div_ceil(1000) as u64;
        let mut reached = 0;
        let mut numbers = self.numbers.iter();
        let found = numbers.find(|number| {
            reached += total(&number.counts);
            reached >= rank
        })?;
        let share = f64::from(thousandths) / 1000.0;
        Some(QuantileInterval {
            value: found.number,
            low: self.low(share, level),
            high: self.high(share, level),
        })
    }

    /// The least number that may be a percentile; `None` if it could be less than all.
    fn low(&self, share: f64, level: &Level) -> Option<Scalar> {
        let mut through = [0; SLICES];
        if !self.is_beyond(&through, share, level, Tail::Below) {
            return None;
        }
        let mut numbers = self.numbers.iter();
        let first = numbers.find(|number| {
            add(&mut through, &number.counts);
            !self.is_beyond(&through, share, level, Tail::Below)
        });
        first.map(|first| first.number)
    }

    /// The greatest number that may be a percentile; `None` if it could be greater than all.
    fn high(&self, share: f64, level: &Level) -> Option<Scalar> {
        let mut through = self.all;
        let mut last = None;
        for RankedNumber { number, counts } in self.numbers.iter().rev() {
            if !self.is_beyond(&through, share, level, Tail::Above) {
                break;
            }
            last = Some(*number);
            through
                .iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum -= count);
        }
        last
    }

    /// Whether those up to some number are too few, or too many, for the percentile of a share.
    fn is_beyond(&self, through: &Counts, share: f64, level: &Level, tail: Tail) -> bool {
        let found = total(through) as f64 / self.count() as f64;
        let is_candidate = match tail {
            Tail::Below => found < share,
            Tail::Above => found > share,
        };
        let Some(mean) = Mean::of_share(through, &self.all).filter(|_| is_candidate) else {
            return false;
        };
        let adjusted = level.normal() / level.student(mean.freedom);
        let size = self.count() as f64 / mean.effect * adjusted * adjusted;
        chance(size, share, found, tail) <= level.each / 2.0
    }

    /// How much numbers go up (1) or down (-1) all the time, and no other way: the rank correlation of the medians of slices with time.
    pub(crate) fn drift(&self) -> f64 {
        let medians: Vec<usize> = (0..SLICES)
            .filter_map(|slice| self.median_of(slice))
            .collect();
        let count = medians.len() as f64;
        if count < MIN_SLICES {
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

    fn ends(quantile: QuantileInterval) -> (Option<f64>, f64, Option<f64>) {
        let value = |end: Option<Scalar>| end.map(Scalar::approximate);
        (
            value(quantile.low),
            quantile.value.approximate(),
            value(quantile.high),
        )
    }

    #[test]
    fn what_drifts_has_a_wide_interval() {
        let mixed = ranked(|at| (at * 7919 % 10_007) as i128, 10_007);
        let (low, median, high) = ends(mixed.quantile(500, &Level::new(0.01)).unwrap());
        let (low, high) = (low.unwrap(), high.unwrap());
        assert!(low < median && median < high);
        assert!(high - low < 1000.0, "{low} {high}");
        let counting = ranked(|at| at as i128, 10_007);
        assert_eq!(
            counting.quantile(500, &Level::new(0.01)).unwrap().value,
            mixed.quantile(500, &Level::new(0.01)).unwrap().value
        );
        let (low, _, high) = ends(counting.quantile(500, &Level::new(0.01)).unwrap());
        assert!(low.unwrap() < 2000.0 && high.unwrap() > 8000.0);
        assert!(mixed.drift().abs() < 0.6);
        assert_eq!(counting.drift(), 1.0);
    }

    #[test]
    fn intervals_of_independent_numbers_are_those_of_order_statistics() {
        let mixed = |count: usize| ranked(move |at| (at * 7919 % count) as i128, count);
        // 1000 numbers and Student's t with 19 degrees: as 878 numbers, whose median is between the 400th and 479th.
        let (low, _, high) = ends(mixed(1000).quantile(500, &Level::new(0.01)).unwrap());
        let (low, high) = (low.unwrap(), high.unwrap());
        assert!((445.0..466.0).contains(&low), "{low}");
        assert!((534.0..555.0).contains(&high), "{high}");
        // 100 numbers have no upper bound for p99: the greatest is below it in 37 of 100 cases.
        let (low, _, high) = ends(mixed(100).quantile(990, &Level::new(0.01)).unwrap());
        assert!(low.unwrap() < 97.0);
        assert_eq!(high, None);
    }

    #[test]
    fn what_is_far_off_is_known_to_be_whatever_drifts() {
        let slower = ranked(|at| 5000 + at as i128, 300);
        let (low, _, _) = ends(slower.quantile(500, &Level::new(0.001)).unwrap());
        assert!(low.unwrap() >= 5000.0);
    }

    #[test]
    fn one_number_has_no_interval() {
        let same = ranked(|_| 5, 1000);
        assert_eq!(
            ends(same.quantile(500, &Level::new(0.01)).unwrap()),
            (Some(5.0), 5.0, Some(5.0))
        );
        assert_eq!(same.counts(Scalar::Integer(Integer(5))), [50; SLICES]);
        assert_eq!(same.drift(), 0.0);
        assert!(Ranked::new(Vec::<Distribution<Integer>>::new()).is_none());
    }
}

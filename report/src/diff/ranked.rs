//! Numbers in ascending order, and the intervals that their percentiles lie in.
//!
//! The interval of a percentile is that of order statistics: the ranks that so many independent numbers would leave open (binomial,
//! exact where they are few). Numbers of one time resemble each other, so that they count for fewer: for as many as the share of numbers
//! up to the percentile, from slice to slice, varies like (Woodruff's interval with Korn's and Graubard's effective sample size). A rank
//! beyond the first or last number leaves the interval open on that side.

use std::collections::BTreeMap;

use statrs::function::beta::checked_beta_reg;

use super::noise::{Mean, critical, critical_normal};
use super::slices::{Counts, SLICES, add, total};
use crate::report::distribution::Distribution;
use crate::report::number::{Float, Integer, Number};
use crate::text::Text;

/// Numbers below and above a rank, of each at least so many, from which on the normal distribution stands for the binomial one.
const MANY: f64 = 200.0;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Integer(Integer),
    Float(Float),
}

/// Numbers in ascending order, each with its count in each slice.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) numbers: Vec<(Scalar, Counts)>,
    /// The greatest, exactly.
    pub(super) most: Scalar,
    /// Whether numbers are as they were; else within 1/256.
    pub(super) exact: bool,
    /// Of all.
    pub(super) all: Counts,
}

/// A percentile, and the interval that it lies in, as far as there are numbers enough to tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantile {
    pub(super) value: Scalar,
    pub(super) low: Option<Scalar>,
    pub(super) high: Option<Scalar>,
}

impl Scalar {
    pub(super) fn value(self) -> f64 {
        match self {
            Self::Integer(Integer(number)) => number as f64,
            Self::Float(number) => number.value(),
        }
    }

    /// In decimal.
    pub(super) fn decimal(self) -> String {
        let mut out = Text::default();
        match self {
            Self::Integer(number) => number.write(&mut out),
            Self::Float(number) => number.write(&mut out),
        }
        out.into_string()
    }
}

impl From<Integer> for Scalar {
    fn from(number: Integer) -> Self {
        Self::Integer(number)
    }
}

impl From<Float> for Scalar {
    fn from(number: Float) -> Self {
        Self::Float(number)
    }
}

impl Ranked {
    /// The numbers of each slice together; `None` if there are none.
    pub(super) fn new<N: Number + Into<Scalar>>(mut slices: Vec<Distribution<N>>) -> Option<Self> {
        let mut whole = Distribution::default();
        for slice in &mut slices {
            slice.settle();
            whole.merge(slice.clone());
        }
        let (least, most) = whole.ends()?;
        let exact = whole.values().is_some();
        let mut numbers: BTreeMap<N, Counts> = BTreeMap::new();
        let mut all = [0; SLICES];
        for (at, slice) in slices.iter().enumerate().take(SLICES) {
            for (number, count) in slice.counts() {
                let number = if exact {
                    number
                } else {
                    N::middle(number.bucket()).clamp(least, most)
                };
                numbers.entry(number).or_insert([0; SLICES])[at] += count;
                all[at] += count;
            }
        }
        let numbers = numbers.into_iter();
        Some(Self {
            numbers: numbers
                .map(|(number, counts)| (number.into(), counts))
                .collect(),
            most: most.into(),
            exact,
            all,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        total(&self.all)
    }

    /// How often a number came.
    pub(super) fn of(&self, number: Scalar) -> Counts {
        let mut known = self.numbers.iter();
        let found = known.find(|(known, _)| *known == number);
        found.map_or([0; SLICES], |(_, counts)| *counts)
    }

    /// The least number that at least so many thousandths of all do not exceed, and its interval, which misses it in so many
    /// cases (0 to 1).
    pub(super) fn quantile(&self, thousandths: u32, level: f64) -> Option<Quantile> {
        let count = self.count();
        let rank = (u128::from(count) * u128::from(thousandths)).div_ceil(1000) as u64;
        let (at, below) = self.place(rank)?;
        let (value, here) = *self.numbers.get(at)?;
        let mut through = below;
        add(&mut through, &here);
        let share = f64::from(thousandths) / 1000.0;
        let size = self.effective_size(share, [&below, &through], level);
        let number = |rank: u64| {
            let (at, _) = self.place(rank)?;
            self.numbers.get(at).map(|(number, _)| *number)
        };
        let scale = count as f64 / size?;
        let (low, high) = ranks(size?, share, level);
        let low = low.map(|low| (low * scale).floor() as u64);
        let high = high.map(|high| (high * scale).ceil() as u64);
        Some(Quantile {
            value,
            low: low.filter(|rank| *rank > 0).and_then(number),
            high: high.filter(|rank| *rank <= count).and_then(number),
        })
    }

    /// Index of the number at a rank from 1, and the counts below it.
    fn place(&self, rank: u64) -> Option<(usize, Counts)> {
        let mut below = [0; SLICES];
        let mut reached = 0;
        for (at, (_, counts)) in self.numbers.iter().enumerate() {
            reached += total(counts);
            if reached >= rank {
                return Some((at, below));
            }
            add(&mut below, counts);
        }
        None
    }

    /// As how many independent numbers they count, for a share of them: by the greater variance of the shares that lie below
    /// and up to the percentile, which is one number that may have come often.
    fn effective_size(&self, share: f64, parts: [&Counts; 2], level: f64) -> Option<f64> {
        let means = parts.map(|part| Mean::of_share(part, &self.all));
        let [Some(below), Some(through)] = means else {
            return None;
        };
        let mean = if below.variance > through.variance {
            below
        } else {
            through
        };
        let size = (share * (1.0 - share) / mean.variance).min(self.count() as f64);
        let adjusted = critical_normal(level) / critical(level, mean.freedom);
        Some(size * adjusted * adjusted)
    }
}

/// Ranks between which the percentile of so many independent numbers lies, but for so many cases; `None` where that is beyond the
/// first or last one.
fn ranks(size: f64, share: f64, level: f64) -> (Option<f64>, Option<f64>) {
    let tail = level / 2.0;
    if size * share.min(1.0 - share) > MANY {
        let reach = critical_normal(level) * (size * share * (1.0 - share)).sqrt();
        let low = size * share - reach;
        return (Some(low), Some(size * share + reach + 1.0));
    }
    // The chance that so many, or fewer but for one, lie up to the percentile; that so many or more do.
    let fewer = |rank: f64| regular(size - rank + 1.0, rank, 1.0 - share);
    let more = |rank: f64| regular(rank, size - rank + 1.0, share);
    if size < 1.0 {
        return (None, None);
    }
    let low = (fewer(1.0) <= tail).then(|| boundary(size, |rank| fewer(rank) <= tail));
    let high = (more(size) <= tail).then(|| boundary(size, |rank| more(rank) > tail));
    (low, high)
}

/// The greatest number from 1 to `most` of which it is true, where it is true up to one and false from there on.
fn boundary(most: f64, is_true: impl Fn(f64) -> bool) -> f64 {
    let (mut from, mut to) = (1.0, most);
    for _ in 0..48 {
        let middle = f64::midpoint(from, to);
        if is_true(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    f64::midpoint(from, to)
}

/// The regularized incomplete beta function; 1, so that nothing is made of it, where it has no value.
fn regular(a: f64, b: f64, x: f64) -> f64 {
    checked_beta_reg(a, b, x).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(number: impl Fn(usize) -> i128, count: usize) -> Ranked {
        let mut slices = vec![Distribution::<Integer>::default(); SLICES];
        for at in 0..count {
            slices[at * SLICES / count].add(Integer(number(at)));
        }
        Ranked::new(slices).unwrap()
    }

    fn ends(quantile: Quantile) -> (Option<f64>, f64, Option<f64>) {
        let value = |end: Option<Scalar>| end.map(Scalar::value);
        (
            value(quantile.low),
            quantile.value.value(),
            value(quantile.high),
        )
    }

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        // Of 100 numbers the median lies between the 40th and the 61st in 96.5 of 100 cases.
        let (low, high) = ranks(100.0, 0.5, 0.05);
        assert_eq!((low.unwrap().floor(), high.unwrap().ceil()), (40.0, 61.0));
        // 100 numbers have no upper bound for p99: the greatest is below it in 37 of 100 cases.
        let (low, high) = ranks(100.0, 0.99, 0.01);
        assert_eq!(low.unwrap().floor(), 96.0);
        assert_eq!(high, None);
        // Where one way of working it out gives way to the other, both say the same.
        for size in [19_900.0, 20_100.0] {
            let (low, high) = ranks(size, 0.99, 0.001);
            let reach = 3.2905 * (size * 0.99 * 0.01f64).sqrt();
            assert!(
                (low.unwrap() - (size * 0.99 - reach)).abs() < 4.0,
                "{low:?}"
            );
            assert!(
                (high.unwrap() - (size * 0.99 + reach)).abs() < 4.0,
                "{high:?}"
            );
        }
    }

    #[test]
    fn what_drifts_has_a_wide_interval() {
        let mixed = ranked(|at| (at * 7919 % 10_007) as i128, 10_007);
        let (low, median, high) = ends(mixed.quantile(500, 0.01).unwrap());
        let (low, high) = (low.unwrap(), high.unwrap());
        assert!(low < median && median < high);
        assert!(high - low < 1000.0, "{low} {high}");
        let counting = ranked(|at| at as i128, 10_007);
        assert_eq!(
            counting.quantile(500, 0.01).unwrap().value,
            mixed.quantile(500, 0.01).unwrap().value
        );
        let (low, _, high) = ends(counting.quantile(500, 0.01).unwrap());
        assert_eq!((low, high), (None, None));
    }

    #[test]
    fn one_number_has_no_interval() {
        let same = ranked(|_| 5, 1000);
        assert_eq!(
            ends(same.quantile(500, 0.01).unwrap()),
            (Some(5.0), 5.0, Some(5.0))
        );
        assert_eq!(same.of(Scalar::Integer(Integer(5))), [50; SLICES]);
        assert!(Ranked::new(Vec::<Distribution<Integer>>::new()).is_none());
    }
}

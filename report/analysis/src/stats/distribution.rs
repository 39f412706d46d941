//! How numbers are spread: exactly while there are few different ones, else in buckets.
//!
//! Numbers are counted one by one up to 256 different ones, and then in buckets of 1/256 of themselves, which is the
//! error of percentiles.

use foldhash::HashMap;

use crate::stats::frequency::Frequency;
use crate::stats::number::{Float, Integer, Number};

/// Different numbers that are counted one by one; beyond them, buckets are.
pub(crate) const EXACT: usize = 256;
/// Buckets that are kept together.
const PAGE: usize = 128;

/// Counts of numbers, in bounded memory.
#[derive(Clone, Debug)]
pub(crate) struct Distribution<N> {
    count: u64,
    ends: Option<Extremes<N>>,
    spread: Spread<N>,
    /// The last number, and how often in a row it came and is not yet counted.
    run: Option<Frequency<N>>,
}

#[derive(Clone, Debug)]
enum Spread<N> {
    Exact(HashMap<N, u64>),
    /// Counts of buckets, in pages that are made when one of their buckets is first needed.
    Buckets(Vec<Option<Box<[u64; PAGE]>>>),
}

impl<N> Default for Distribution<N> {
    fn default() -> Self {
        Self {
            count: 0,
            ends: None,
            spread: Spread::Exact(HashMap::default()),
            run: None,
        }
    }
}

impl<N: Number> Distribution<N> {
    /// Takes a number; [`settle`](Self::settle) counts it.
    #[inline]
    pub(crate) fn add(&mut self, number: N) {
        match &mut self.run {
            Some(run) if run.value == number => run.count += 1,
            run => {
                if let Some(last) = run.replace(Frequency::new(number, 1)) {
                    self.add_many(last.value, last.count);
                }
            }
        }
    }

    /// Counts what was taken and is not yet counted. To be called before anything is asked.
    pub(crate) fn settle(&mut self) {
        if let Some(last) = self.run.take() {
            self.add_many(last.value, last.count);
        }
    }

    #[inline]
    fn add_many(&mut self, number: N, times: u64) {
        self.count += times;
        self.ends = Some(Extremes::with(self.ends, number));
        match &mut self.spread {
            Spread::Exact(counts) => {
                if let Some(count) = counts.get_mut(&number) {
                    *count += times;
                } else {
                    self.add_new(number, times);
                }
            }
            Spread::Buckets(pages) => add_to_bucket(pages, number.bucket(), times),
        }
    }

    #[cold]
    fn add_new(&mut self, number: N, times: u64) {
        if let Spread::Exact(counts) = &mut self.spread {
            counts.insert(number, times);
            if counts.len() > EXACT {
                let mut pages = Vec::new();
                for (number, count) in counts {
                    add_to_bucket(&mut pages, number.bucket(), *count);
                }
                self.spread = Spread::Buckets(pages);
            }
        }
    }

    /// Adds the counts of another. The result does not depend on how numbers were divided between the two.
    pub(crate) fn merge(&mut self, mut other: Self) {
        other.settle();
        match other.spread {
            Spread::Exact(counts) => {
                for (number, count) in counts {
                    self.add_many(number, count);
                }
            }
            Spread::Buckets(pages) => {
                self.count += other.count;
                if let Some(ends) = other.ends {
                    let least = Extremes::with(self.ends, ends.least);
                    self.ends = Some(Extremes::with(Some(least), ends.greatest));
                }
                self.merge_pages(pages);
            }
        }
    }

    fn merge_pages(&mut self, mut theirs: Vec<Option<Box<[u64; PAGE]>>>) {
        match &mut self.spread {
            Spread::Exact(counts) => {
                for (number, count) in counts {
                    add_to_bucket(&mut theirs, number.bucket(), *count);
                }
                self.spread = Spread::Buckets(theirs);
            }
            Spread::Buckets(pages) => {
                for (page, counts) in theirs.into_iter().enumerate() {
                    for (at, &count) in counts.iter().flat_map(|counts| counts.iter().enumerate()) {
                        if count > 0 {
                            add_to_bucket(pages, (page * PAGE + at) as u32, count);
                        }
                    }
                }
            }
        }
    }

    /// Number of numbers counted.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The least and the greatest, exactly.
    pub(crate) const fn ends(&self) -> Option<Extremes<N>> {
        self.ends
    }

    /// The least number that at least half of all do not exceed; exactly, or within 1/256 of it.
    pub(crate) fn median(&self) -> Option<Quantile<N>> {
        self.quantile(500)
    }

    /// The least number that at least so many thousandths of all do not exceed; exactly, or within 1/256 of it.
    pub(crate) fn quantile(&self, thousandths: u64) -> Option<Quantile<N>> {
        let Extremes { least, greatest } = self.ends?;
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
        let rank = u64::try_from(rank).unwrap_or(self.count);
        let mut below = 0;
        let mut reached = |count: u64| {
            below += count;
            below >= rank
        };
        match &self.spread {
            Spread::Exact(_) => {
                let values = self.values().unwrap_or_default();
                let found = values.iter().find(|one| reached(one.count));
                found.map(|one| Quantile::Exact(one.value))
            }
            Spread::Buckets(pages) => {
                let mut buckets = pages.iter().enumerate().flat_map(|(page, counts)| {
                    let counts = counts.iter().flat_map(|counts| counts.iter().enumerate());
                    counts.map(move |(at, &count)| ((page * PAGE + at) as u32, count))
                });
                let (bucket, _) = buckets.find(|(_, count)| reached(*count))?;
                Some(Quantile::Near(N::middle(bucket).clamp(least, greatest)))
            }
        }
    }

    /// Numbers with their counts in ascending order: those that are counted one by one, else the middles of buckets.
    pub(crate) fn counts(&self) -> Vec<Frequency<N>> {
        match &self.spread {
            Spread::Exact(_) => self.values().unwrap_or_default(),
            Spread::Buckets(pages) => {
                let counts = pages.iter().enumerate().flat_map(|(page, counts)| {
                    let counts = counts.iter().flat_map(|counts| counts.iter().enumerate());
                    counts.map(move |(at, &count)| ((page * PAGE + at) as u32, count))
                });
                let filled = counts.filter(|(_, count)| *count > 0);
                filled
                    .map(|(bucket, count)| Frequency::new(N::middle(bucket), count))
                    .collect()
            }
        }
    }

    /// All different numbers with their counts in ascending order, where they are counted one by one.
    pub(crate) fn values(&self) -> Option<Vec<Frequency<N>>> {
        let Spread::Exact(counts) = &self.spread else {
            return None;
        };
        let values = counts.iter();
        let values = values.map(|(&number, &count)| Frequency::new(number, count));
        let mut values: Vec<Frequency<N>> = values.collect();
        values.sort_unstable_by_key(|one| one.value);
        Some(values)
    }
}

impl Distribution<Integer> {
    /// The same numbers as floats.
    pub(crate) fn to_floats(&self) -> Distribution<Float> {
        let float = |number: Integer| Float::double(number.approximate());
        let counts = self.counts().into_iter();
        let counts = counts.filter_map(|one| Some(Frequency::new(float(one.value)?, one.count)));
        let mut floats = Distribution::default();
        let Spread::Buckets(_) = self.spread else {
            counts.for_each(|one| floats.add_many(one.value, one.count));
            return floats;
        };
        let mut pages = Vec::new();
        counts.for_each(|one| add_to_bucket(&mut pages, one.value.bucket(), one.count));
        Distribution {
            count: self.count,
            ends: self.ends.and_then(|ends| {
                Some(Extremes {
                    least: float(ends.least)?,
                    greatest: float(ends.greatest)?,
                })
            }),
            spread: Spread::Buckets(pages),
            run: None,
        }
    }
}

/// The least and the greatest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extremes<N> {
    pub(crate) least: N,
    pub(crate) greatest: N,
}

impl<N: Ord + Copy> Extremes<N> {
    /// The extremes with one more number.
    #[inline]
    fn with(known: Option<Self>, number: N) -> Self {
        let (least, greatest) = known.map_or((number, number), |all| (all.least, all.greatest));
        Self {
            least: least.min(number),
            greatest: greatest.max(number),
        }
    }
}

/// A quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantile<N> {
    /// The exact value.
    Exact(N),
    /// Within 1/256 of it.
    Near(N),
}

#[inline]
fn add_to_bucket(pages: &mut Vec<Option<Box<[u64; PAGE]>>>, bucket: u32, times: u64) {
    let (page, at) = (bucket as usize / PAGE, bucket as usize % PAGE);
    if page >= pages.len() {
        pages.resize(page + 1, None);
    }
    pages[page].get_or_insert_with(|| Box::new([0; PAGE]))[at] += times;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(numbers: impl IntoIterator<Item = i128>) -> Distribution<Integer> {
        let mut all = Distribution::default();
        numbers
            .into_iter()
            .for_each(|number| all.add(Integer(number)));
        all.settle();
        all
    }

    fn ends(all: &Distribution<Integer>) -> (i128, i128) {
        let ends = all.ends().unwrap();
        (ends.least.0, ends.greatest.0)
    }

    #[test]
    fn few_different_numbers_are_exact() {
        let all = distribution([5, -1, 5, 5, 7, 1 << 40]);
        assert_eq!(all.count(), 6);
        assert_eq!(ends(&all), (-1, 1 << 40));
        assert_eq!(all.median(), Some(Quantile::Exact(Integer(5))));
        assert_eq!(all.values().unwrap()[1], Frequency::new(Integer(5), 3));
        assert_eq!(distribution([]).median(), None);
        assert_eq!(
            distribution([1, 2]).median(),
            Some(Quantile::Exact(Integer(1)))
        );
    }

    #[test]
    fn many_different_numbers_are_near() {
        let all = distribution(-1000..100_000);
        assert_eq!(ends(&all), (-1000, 99_999));
        assert!(all.values().is_none());
        let Some(Quantile::Near(Integer(median))) = all.median() else {
            panic!("{:?}", all.median());
        };
        assert!((median - 49_499).abs() <= 49_499 / 256, "{median}");
    }

    #[test]
    fn merging_does_not_depend_on_the_division() {
        let numbers: Vec<i128> = (0..2000).map(|at| (at * at) % 1013 - 500).collect();
        let whole = distribution(numbers.iter().copied());
        for parts in [2, 3, 500] {
            let mut merged = Distribution::default();
            for part in numbers.chunks(numbers.len() / parts) {
                merged.merge(distribution(part.iter().copied()));
            }
            assert_eq!(merged.count(), whole.count());
            assert_eq!(merged.ends(), whole.ends());
            assert_eq!(merged.median(), whole.median());
            assert_eq!(merged.values(), whole.values());
        }
        let mut few = distribution(0..200);
        few.merge(distribution(100..256));
        assert_eq!(few.values().unwrap().len(), 256);
        few.merge(distribution([256]));
        assert!(few.values().is_none());
    }
}

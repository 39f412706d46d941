//! Numbers that were counted and added up elsewhere, as by programs in the kernel.

use std::ops::Range;

use usdtrec_format::{NumberBucket, NumberEnds};

use crate::counted_histogram::CountedHistogram;
use crate::groups::stats::quotient;
use crate::histogram::{Bucket, by_power};
use crate::stats::frequency::Frequency;
use crate::stats::log2::BucketKind;
use crate::stats::number::Integer;

/// What is known of some numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedNumbers {
    /// How many they are.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// The least and the greatest; `None` if not known.
    pub ends: Option<NumberEnds>,
    /// The counts of buckets without empty ones; `None` without a histogram.
    pub histogram: Option<CountedHistogram>,
    /// How many of them are in no bucket.
    pub unbucketed: u64,
}

/// Statistics of the numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberFacts {
    /// How many they are.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// Their arithmetic mean; `None` if there are no numbers.
    pub mean: Option<f64>,
    /// The least and the greatest; `None` if not known.
    pub ends: Option<NumberEnds>,
    /// How they are distributed; `None` if not known.
    pub distribution: Option<NumberDistribution>,
}

/// How numbers are distributed.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberDistribution {
    /// The percentiles; `None` if there are no numbers.
    pub percentiles: Option<Percentiles>,
    /// Whether percentiles are exact; else they are within 1/64 of themselves.
    pub exact: bool,
    /// Number of numbers in buckets.
    pub count: u64,
    histogram: CountedHistogram,
}

/// Percentiles of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// The median.
    pub p50: i128,
    /// The 0.90 quantile.
    pub p90: i128,
    /// The 0.99 quantile.
    pub p99: i128,
}

impl CountedNumbers {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.unbucketed += other.unbucketed;
        self.ends = NumberEnds::of_both(self.ends, other.ends);
        if let Some(histogram) = other.histogram {
            self.histogram.get_or_insert_default().add(histogram);
        }
    }

    /// The numbers that were not counted at an earlier time. The extremes are those of both: earlier numbers have none if they are not to count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let histogram = match (&self.histogram, &earlier.histogram) {
            (Some(histogram), Some(earlier)) => Some(histogram.since(earlier)),
            (histogram, _) => histogram.clone(),
        };
        Self {
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum - earlier.sum,
            ends: NumberEnds::of_both(self.ends, earlier.ends),
            histogram,
            unbucketed: self.unbucketed.saturating_sub(earlier.unbucketed),
        }
    }

    /// The statistics.
    #[must_use]
    pub fn facts(&self) -> NumberFacts {
        let histogram = self.histogram.as_ref();
        let histogram = histogram.filter(|_| self.unbucketed == 0);
        NumberFacts {
            count: self.count,
            sum: self.sum,
            mean: (self.count > 0).then(|| quotient(self.sum, self.count)),
            ends: self.ends.filter(|_| self.count > 0),
            distribution: histogram.map(|histogram| self.distribution(histogram)),
        }
    }

    fn distribution(&self, histogram: &CountedHistogram) -> NumberDistribution {
        let count = histogram.iter().map(|(_, count)| count).sum();
        NumberDistribution {
            percentiles: (count > 0).then(|| self.percentiles(histogram, count)),
            exact: histogram.iter().all(|(bucket, _)| bucket.is_one_number()),
            count,
            histogram: histogram.clone(),
        }
    }

    /// Of each, the middle of the bucket with the least number that at least its part of `count` numbers do not exceed.
    fn percentiles(&self, histogram: &CountedHistogram, count: u64) -> Percentiles {
        let mut below = 0;
        let mut buckets = histogram.iter();
        let mut found = None;
        let [p50, p90, p99] = [500, 900, 990].map(|thousandths| {
            let rank = (u128::from(count) * thousandths).div_ceil(1000);
            while below < rank
                && let Some((bucket, count)) = buckets.next()
            {
                below += u128::from(count);
                found = Some(bucket);
            }
            found.map_or(0, |bucket| self.middle(bucket))
        });
        Percentiles { p50, p90, p99 }
    }

    /// The middle of a bucket, if it is between the extremes.
    fn middle(&self, bucket: NumberBucket) -> i128 {
        let Range { start, end } = bucket.numbers();
        let middle = i128::midpoint(start, end);
        let middle = self
            .ends
            .map_or(middle, |ends| middle.clamp(ends.min, ends.max));
        // Of negative numbers, one that is in the bucket.
        middle.min(end - 1)
    }
}

impl NumberDistribution {
    /// Buckets that are powers of two, from the lowest up.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let numbers = self.histogram.iter();
        let numbers: Vec<_> = numbers
            .map(|(bucket, count)| Frequency::new(Integer(bucket.from()), count))
            .collect();
        by_power(&numbers, BucketKind::Integer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::stats::number::Scalar;

    fn numbers(all: &[(i128, i128, u64)]) -> CountedNumbers {
        let buckets = all.iter();
        let histogram = buckets.map(|(from, to, count)| {
            let bucket = NumberBucket::from_number(*from);
            assert_eq!(bucket.numbers(), *from..*to);
            (bucket, *count)
        });
        let of = |number: fn(i128, i128) -> i128, start| {
            let edges = all.iter().map(|(from, to, _)| (*from, *to - 1));
            edges.fold(start, |one, (from, to)| number(number(one, from), to))
        };
        CountedNumbers {
            count: all.iter().map(|(_, _, count)| count).sum(),
            sum: all
                .iter()
                .map(|(from, _, count)| from * i128::from(*count))
                .sum(),
            ends: Some(NumberEnds {
                min: of(i128::min, i128::MAX),
                max: of(i128::max, i128::MIN),
            }),
            histogram: Some(histogram.collect()),
            unbucketed: 0,
        }
    }

    #[test]
    fn percentiles_are_near() {
        let all = numbers(&[(-66, -64, 10), (0, 1, 40), (7, 8, 1), (64, 66, 50)]);
        let facts = all.facts();
        let distribution = facts.distribution.unwrap();
        let percentiles = Percentiles {
            p50: 7,
            p90: 65,
            p99: 65,
        };
        assert_eq!(distribution.percentiles, Some(percentiles));
        assert!(!distribution.exact);
        let buckets = distribution.buckets();
        let first = &buckets[0];
        assert_eq!(first.count, 10);
        let from = crate::histogram::Edge::Number(Scalar::integer(-128));
        assert_eq!(first.from, from);
        assert_eq!(buckets.iter().map(|one| one.count).sum::<u64>(), 101);
        assert_eq!(facts.mean, Some((10.0 * -66.0 + 7.0 + 50.0 * 64.0) / 101.0));
    }

    #[test]
    fn intervals_add_up() {
        let first = numbers(&[(1, 2, 3), (9, 10, 1)]);
        let mut second = first.clone();
        second.add(numbers(&[(-4, -3, 2), (9, 10, 5)]));
        let between = second.since(&first);
        assert_eq!((between.count, between.sum), (7, 37));
        let histogram = between.histogram.clone().unwrap();
        let counts = histogram.iter().map(|(_, count)| count);
        assert_eq!(counts.collect::<Vec<_>>(), [2, 5]);
        assert_eq!(second.ends.map(|ends| (ends.min, ends.max)), Some((-4, 9)));
        let before = CountedNumbers {
            ends: None,
            ..second.clone()
        };
        let now = before.clone();
        let none = now.since(&before).facts();
        assert_eq!((none.count, none.mean, none.ends), (0, None, None));
        assert_eq!(none.distribution.unwrap().percentiles, None);
    }
}

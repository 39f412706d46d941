//! Sums and histograms of the values of an argument.

use usdtrec_format::schema::Argument;

/// What is known of the values of an argument, or of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct StatFigures {
    /// What the argument is; its name is that of the column.
    pub argument: Argument,
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// The least and the greatest one; `None` if there is none, or if they are not known of an interval.
    pub range: Option<StatRange>,
    /// The buckets with values, the least first; empty without a histogram.
    pub buckets: Vec<StatBucket>,
}

/// The least and the greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatRange {
    /// The least one.
    pub least: i128,
    /// The greatest one.
    pub most: i128,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatBucket {
    /// The values that it has.
    pub values: StatRange,
    /// Number of values.
    pub count: u64,
}

impl StatFigures {
    /// Adds what is known of further values.
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.range = match (self.range, other.range) {
            (Some(one), Some(two)) => Some(StatRange {
                least: one.least.min(two.least),
                most: one.most.max(two.most),
            }),
            (one, two) => one.or(two),
        };
        for bucket in &other.buckets {
            let same = |known: &StatBucket| known.values.least.cmp(&bucket.values.least);
            match self.buckets.binary_search_by(same) {
                Ok(at) => self.buckets[at].count += bucket.count,
                Err(at) => self.buckets.insert(at, *bucket),
            }
        }
    }

    /// The quantile of the histogram, `share` from 0 to 1: the middle of the bucket that has it, within the range. `None` without values.
    pub(super) fn quantile(&self, share: f64) -> Option<i128> {
        let all: u64 = self.buckets.iter().map(|bucket| bucket.count).sum();
        let rank = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            below += bucket.count;
            below >= rank
        })?;
        let StatRange { least, most } = bucket.values;
        let middle = least + (most - least) / 2;
        Some(match self.range {
            Some(range) => middle.max(range.least).min(range.most),
            None => middle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(least: i128, most: i128, count: u64) -> StatBucket {
        let values = StatRange { least, most };
        StatBucket { values, count }
    }

    #[test]
    fn quantiles_are_within_bucket_and_range() {
        let mut figures = StatFigures {
            argument: Argument::named("bytes"),
            count: 100,
            sum: 0,
            range: Some(StatRange {
                least: 3,
                most: 1500,
            }),
            buckets: vec![bucket(0, 9, 98), bucket(1000, 1999, 2)],
        };
        assert_eq!(figures.quantile(0.5), Some(4));
        assert_eq!(figures.quantile(0.98), Some(4));
        assert_eq!(figures.quantile(0.99), Some(1499));
        assert_eq!(figures.quantile(0.0), Some(4));
        figures.range = Some(StatRange {
            least: 7,
            most: 1200,
        });
        assert_eq!(figures.quantile(0.5), Some(7));
        assert_eq!(figures.quantile(1.0), Some(1200));
        let mut sum = figures.clone();
        figures.buckets = vec![bucket(10, 19, 1), bucket(1000, 1999, 3)];
        figures.range = None;
        sum.add(&figures);
        assert_eq!(
            (sum.count, sum.range.map(|range| range.least)),
            (200, Some(7))
        );
        let counts: Vec<u64> = sum.buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [98, 1, 5]);
        figures.buckets.clear();
        assert_eq!(figures.quantile(0.5), None);
    }
}

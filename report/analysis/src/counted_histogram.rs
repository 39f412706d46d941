//! The counts of buckets of numbers.

use usdtrec_format::NumberBucket;

/// The counts of buckets in ascending order, without empty ones. They are copied, added and compared at each interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedHistogram(Vec<(NumberBucket, u64)>);

impl CountedHistogram {
    /// The buckets and their counts, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (NumberBucket, u64)> {
        self.0.iter().copied()
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
        } else {
            self.0.extend(other.0);
            self.put_in_order();
        }
    }

    /// The numbers that were not counted earlier.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut before = earlier.0.iter().peekable();
        let mut new = Vec::with_capacity(self.0.len());
        let since = self.iter().map(|(bucket, count)| {
            while before.next_if(|(known, _)| *known < bucket).is_some() {}
            let known = before.next_if(|(known, _)| *known == bucket);
            (
                bucket,
                count.saturating_sub(known.map_or(0, |known| known.1)),
            )
        });
        new.extend(since.filter(|(_, count)| *count > 0));
        Self(new)
    }

    fn put_in_order(&mut self) {
        if self.0.is_sorted_by(|one, other| one.0 < other.0) {
            return;
        }
        self.0.sort_by_key(|(bucket, _)| *bucket);
        self.0.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 += later.1;
            }
            is_same
        });
    }
}

impl FromIterator<(NumberBucket, u64)> for CountedHistogram {
    fn from_iter<T: IntoIterator<Item = (NumberBucket, u64)>>(counts: T) -> Self {
        let mut counts = Self(counts.into_iter().collect());
        counts.put_in_order();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(i128, u64)]) -> CountedHistogram {
        let counts = counts.iter();
        let counts = counts.map(|(number, count)| (NumberBucket::from_number(*number), *count));
        counts.collect()
    }

    #[test]
    fn counts_of_a_bucket_are_added_and_subtracted() {
        let first = histogram(&[(9, 1), (1, 3)]);
        assert_eq!(first, histogram(&[(1, 2), (9, 1), (1, 1)]));
        let mut second = first.clone();
        second.add(histogram(&[(-4, 2), (9, 5)]));
        assert_eq!(second, histogram(&[(-4, 2), (1, 3), (9, 6)]));
        assert_eq!(second.since(&first), histogram(&[(-4, 2), (9, 5)]));
        assert_eq!(first.since(&second), CountedHistogram::default());
    }
}

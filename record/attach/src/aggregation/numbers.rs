//! The numbers that an argument was in the hits of a group.

use usdtrec_format::NumberBucket;

/// What is known of the numbers that an argument was in the hits of a group. All hits that are counted are in the figures. A hit that is being
/// counted while this is read may be in some figures, and is in the counts of a later reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberTotals {
    /// Number of hits in which it was known, since the start.
    pub count: u64,
    /// Sum of the numbers since the start, exactly.
    pub sum: i128,
    /// The extremes since the last reading; `None` if there was no number.
    pub ends: Option<NumberEnds>,
    /// The numbers since the start by bucket, in ascending order, without empty buckets; empty without a histogram.
    pub buckets: Vec<BucketCount>,
    /// Number of those that are in no bucket, because there were too many buckets.
    pub unbucketed: u64,
}

/// The least and the greatest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberEnds {
    /// The least.
    pub min: i128,
    /// The greatest.
    pub max: i128,
}

impl NumberEnds {
    /// Those of the numbers of both.
    #[must_use]
    pub fn of_both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                min: one.min.min(other.min),
                max: one.max.max(other.max),
            }),
            (one, other) => one.or(other),
        }
    }
}

/// A bucket of a histogram with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCount {
    /// The bucket.
    pub bucket: NumberBucket,
    /// Number of numbers in it.
    pub count: u64,
}

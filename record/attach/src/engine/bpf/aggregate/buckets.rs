//! The buckets of an argument: those of numbers from 0 on, and after them those of negative numbers, each at the place of the bucket of their complements.

use std::ops::Range;

use usdtrec_decode::IntegerShape;
use usdtrec_format::NumberBucket;

use crate::aggregation::{BucketCount, NumberEnds};

/// Number of buckets that are not empty, of most arguments.
const USUALLY_FILLED: usize = 64;

/// The buckets of an argument in all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Buckets {
    /// Number of buckets from 0 on.
    pub(super) upper: u32,
    /// Number of buckets of negative numbers.
    pub(super) lower: u32,
}

impl Buckets {
    /// Those of all 64-bit integers, signed or not.
    pub(super) const ALL: Self = Self {
        upper: NumberBucket::count(u64::BITS),
        lower: NumberBucket::count(u64::BITS - 1),
    };

    /// Those of integers of a shape.
    pub(super) const fn for_integers(IntegerShape { bytes, signed }: IntegerShape) -> Self {
        let bits = 8 * bytes as u32;
        match signed {
            true => Self {
                upper: NumberBucket::count(bits - 1),
                lower: NumberBucket::count(bits - 1),
            },
            false => Self {
                upper: NumberBucket::count(bits),
                lower: 0,
            },
        }
    }

    /// Those of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            upper: self.upper.max(other.upper),
            lower: self.lower.max(other.lower),
        }
    }

    /// Whether all of `other` are among them.
    pub(super) const fn have(self, other: Self) -> bool {
        self.upper >= other.upper && self.lower >= other.lower
    }

    /// Number of buckets.
    pub(super) const fn all(self) -> u32 {
        self.upper + self.lower
    }

    /// The buckets that are not empty, in ascending order. All numbers are between these ends. `counts` has the count of each bucket.
    pub(super) fn filled(self, ends: NumberEnds, counts: impl Fn(u32) -> u64) -> Vec<BucketCount> {
        let NumberEnds { min, max } = ends;
        let lower = places(!max.min(-1), !min, self.lower);
        let upper = places(min.max(0), max, self.upper);
        let mut all = Vec::with_capacity((lower.len() + upper.len()).min(USUALLY_FILLED));
        let mut put = |bucket: Option<NumberBucket>, count: u64| {
            if let (Some(bucket), 1..) = (bucket, count) {
                all.push(BucketCount { bucket, count });
            }
        };
        for place in lower.rev() {
            let bucket = NumberBucket::at_place(place).map(NumberBucket::mirrored);
            put(bucket, counts(self.upper + place));
        }
        for place in upper {
            put(NumberBucket::at_place(place), counts(place));
        }
        all.shrink_to_fit();
        all
    }
}

/// The places of the buckets of numbers of one sign, or of their complements, from `first` to `last`, among so many.
fn places(first: i128, last: i128, all: u32) -> Range<u32> {
    let place = |number: i128| u64::try_from(number).map_or(all, NumberBucket::place);
    match last < 0 {
        true => 0..0,
        false => place(first).min(all)..place(last).saturating_add(1).min(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_below_the_others() {
        let buckets = Buckets::for_integers(IntegerShape {
            bytes: 1,
            signed: true,
        });
        assert_eq!((buckets.upper, buckets.lower), (96, 96));
        let ends = |min: i64, max: i64| NumberEnds {
            min: min.into(),
            max: max.into(),
        };
        let all = buckets.filled(ends(i64::MIN, i64::MAX), |_| 1);
        assert_eq!((all[0].bucket.from(), all[191].bucket.to()), (-128, 128));
        assert!(
            all.windows(2)
                .all(|pair| pair[0].bucket.to() == pair[1].bucket.from())
        );
        for number in [-128, -65, -1, 0, 64, 127] {
            let bucket = NumberBucket::from_number(number);
            let bucket = BucketCount { bucket, count: 1 };
            assert!(all.contains(&bucket), "{bucket:?}");
            let only = buckets.filled(ends(number as i64, number as i64), |_| 1);
            assert_eq!(only, [bucket], "{number}");
        }
        let some = buckets.filled(ends(-3, 2), |_| 1);
        let from: Vec<i128> = some.iter().map(|some| some.bucket.from()).collect();
        assert_eq!(from, [-3, -2, -1, 0, 1, 2]);
    }
}

//! The buckets of histograms: each power of two is divided into 32 of one width, and numbers below 64 have a bucket each. So the middle of a bucket
//! differs from each number in it by at most 1/64 of that number.
//!
//! Buckets of numbers from 0 on come first. A negative number is in the bucket of its complement among those after them: -1 in that of 0.

use std::ops::Range;

use usdtrec_decode::IntegerShape;

use crate::aggregation::{NumberBucket, NumberEnds};

/// Bits of a number that make its bucket, besides the highest one.
pub(super) const SUB_BITS: u32 = 5;

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
        upper: number(u64::BITS),
        lower: number(u64::BITS - 1),
    };

    /// Those of integers of a shape.
    pub(super) const fn of(IntegerShape { bytes, signed }: IntegerShape) -> Self {
        let bits = 8 * bytes as u32;
        match signed {
            true => Self {
                upper: number(bits - 1),
                lower: number(bits - 1),
            },
            false => Self {
                upper: number(bits),
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
    pub(super) fn filled(self, ends: NumberEnds, counts: impl Fn(u32) -> u64) -> Vec<NumberBucket> {
        let filled = |bucket: u32| Some(counts(bucket)).filter(|count| *count > 0);
        let NumberEnds { min, max } = ends;
        let lower = places(!max.min(-1), !min, self.lower);
        let upper = places(min.max(0), max, self.upper);
        let of_lower = |place: &u32| filled(self.upper + place).is_some();
        let of_upper = |place: &u32| filled(*place).is_some();
        let count = lower.clone().filter(of_lower).count() + upper.clone().filter(of_upper).count();
        let lower = lower
            .rev()
            .filter_map(|place| Some(bucket(place, true, filled(self.upper + place)?)));
        let upper = upper.filter_map(|place| Some(bucket(place, false, filled(place)?)));
        // Others may be filled meanwhile.
        let mut all = Vec::with_capacity(count);
        all.extend(lower.chain(upper));
        all
    }

    /// A bucket of numbers from 0 on, by its place.
    pub(super) fn upper_bucket(place: u32, count: u64) -> NumberBucket {
        bucket(place, false, count)
    }

    /// The bucket of a number alone.
    pub(super) fn of_constant(constant: i128, count: u64) -> NumberBucket {
        let is_negative = constant < 0;
        let magnitude = if is_negative { !constant } else { constant };
        bucket(place(magnitude as u64), is_negative, count)
    }
}

/// The places of the buckets of numbers of one sign, or of their complements, from `first` to `last`, among so many.
fn places(first: i128, last: i128, all: u32) -> Range<u32> {
    let place = |number: i128| u64::try_from(number).map_or(all, place);
    match last < 0 {
        true => 0..0,
        false => place(first).min(all)..place(last).saturating_add(1).min(all),
    }
}

/// The bucket at a place among those of its sign.
fn bucket(place: u32, is_negative: bool, count: u64) -> NumberBucket {
    let Range { start, end } = numbers(place);
    let (from, to) = match is_negative {
        true => (-end, -start),
        false => (start, end),
    };
    NumberBucket { from, to, count }
}

/// Number of buckets of numbers of so many bits, at least [`SUB_BITS`].
const fn number(bits: u32) -> u32 {
    (bits - SUB_BITS + 1) << SUB_BITS
}

/// The bucket of a number. Programs compute the same.
fn place(number: u64) -> u32 {
    let bits = u64::BITS - number.leading_zeros();
    let shift = bits.saturating_sub(SUB_BITS + 1);
    (shift << SUB_BITS) + (number >> shift) as u32
}

/// The numbers of a bucket.
fn numbers(place: u32) -> Range<i128> {
    let shift = (place >> SUB_BITS).saturating_sub(1);
    let first = i128::from(place - (shift << SUB_BITS)) << shift;
    first..first + (1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_in_one_bucket_that_is_narrow() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power | power >> 3]);
        for number in near.chain([u64::MAX, u64::MAX - 1]) {
            let bucket = numbers(place(number));
            let wide = i128::from(number);
            assert!(bucket.contains(&wide), "{number} is in {bucket:?}");
            let middle = i128::midpoint(bucket.start, bucket.end);
            assert!(64 * (middle - wide).abs() <= wide, "{number} in {bucket:?}");
            let below = numbers(place(number).saturating_sub(1));
            assert!(place(number) == 0 || below.end == bucket.start);
        }
        assert_eq!(place(u64::MAX) + 1, Buckets::ALL.upper);
        assert_eq!(place(i64::MAX.cast_unsigned()) + 1, Buckets::ALL.lower);
    }

    #[test]
    fn negative_numbers_are_below_the_others() {
        let buckets = Buckets::of(IntegerShape {
            bytes: 1,
            signed: true,
        });
        assert_eq!((buckets.upper, buckets.lower), (96, 96));
        let ends = |min: i64, max: i64| NumberEnds {
            min: min.into(),
            max: max.into(),
        };
        let all = buckets.filled(ends(i64::MIN, i64::MAX), |_| 1);
        assert_eq!((all[0].from, all[191].to), (-128, 128));
        assert!(all.windows(2).all(|pair| pair[0].to == pair[1].from));
        for number in [-128, -65, -1, 0, 64, 127] {
            let bucket = Buckets::of_constant(number, 1);
            assert!((bucket.from..bucket.to).contains(&number));
            assert!(all.contains(&bucket), "{bucket:?}");
            let only = buckets.filled(ends(number as i64, number as i64), |_| 1);
            assert_eq!(only, [bucket], "{number}");
        }
        let some = buckets.filled(ends(-3, 2), |_| 1);
        let from: Vec<i128> = some.iter().map(|bucket| bucket.from).collect();
        assert_eq!(from, [-3, -2, -1, 0, 1, 2]);
    }
}

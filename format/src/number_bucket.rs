//! The buckets of histograms that are counted: each power of two is divided into 32 of one width, and numbers below 64 have a bucket each. So the
//! middle of a bucket differs from each number in it by at most 1/64 of that number.

use std::ops::Range;

/// A bucket of 64-bit integers, signed or not. Buckets are in the order of their numbers. The bucket of a negative number is that of its complement,
/// mirrored: -1 is in that of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberBucket(i16);

impl NumberBucket {
    /// Bits of a number that make its bucket, besides the highest one.
    pub const SUB_BITS: u32 = 5;

    /// The one at a place among those of numbers from 0 on; `None` if there are not so many.
    #[must_use]
    pub fn at_place(place: u32) -> Option<Self> {
        let is_there = place < Self::count(u64::BITS);
        let place = i16::try_from(place).ok().filter(|_| is_there);
        place.map(Self)
    }

    /// The one of negative numbers whose complements are in this one of numbers from 0 on.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self(!self.0)
    }

    /// The bucket of a number. One that has no 64 bits is in the bucket that is the nearest.
    #[must_use]
    pub fn from_number(number: i128) -> Self {
        let of_magnitude = |magnitude: i128| {
            let magnitude = u64::try_from(magnitude).unwrap_or(u64::MAX);
            Self(Self::place(magnitude) as i16)
        };
        match number < 0 {
            true => of_magnitude(!number).mirrored(),
            false => of_magnitude(number),
        }
    }

    /// The place of the bucket of a number among those of numbers from 0 on. Programs in the kernel compute the same.
    #[must_use]
    pub const fn place(number: u64) -> u32 {
        let bits = u64::BITS - number.leading_zeros();
        let shift = bits.saturating_sub(Self::SUB_BITS + 1);
        (shift << Self::SUB_BITS) + (number >> shift) as u32
    }

    /// Number of buckets of numbers of so many bits from 0 on, at least [`SUB_BITS`](Self::SUB_BITS).
    #[must_use]
    pub const fn count(bits: u32) -> u32 {
        (bits - Self::SUB_BITS + 1) << Self::SUB_BITS
    }

    /// Its least number.
    #[must_use]
    pub fn from(self) -> i128 {
        self.numbers().start
    }

    /// Its end, which is not in it.
    #[must_use]
    pub fn to(self) -> i128 {
        self.numbers().end
    }

    /// Whether all of its numbers are equal.
    #[must_use]
    pub fn is_one_number(self) -> bool {
        let Range { start, end } = self.numbers();
        end - start == 1
    }

    /// Its numbers.
    #[must_use]
    pub fn numbers(self) -> Range<i128> {
        let is_negative = self.0 < 0;
        let place = if is_negative { !self.0 } else { self.0 };
        let place = u32::from(place.unsigned_abs());
        let shift = (place >> Self::SUB_BITS).saturating_sub(1);
        let first = i128::from(place - (shift << Self::SUB_BITS)) << shift;
        let end = first + (1 << shift);
        match is_negative {
            true => -end..-first,
            false => first..end,
        }
    }
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
    /// The least and greatest number of both; `None` if neither has one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_in_one_bucket_that_is_narrow() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power | power >> 3]);
        for number in near.chain([u64::MAX, u64::MAX - 1]).map(i128::from) {
            let bucket = NumberBucket::from_number(number);
            let numbers = bucket.numbers();
            assert!(numbers.contains(&number), "{number} is in {bucket:?}");
            let middle = i128::midpoint(bucket.from(), bucket.to());
            assert!(
                64 * (middle - number).abs() <= number,
                "{number} in {bucket:?}"
            );
            let below = NumberBucket::from_number(bucket.from() - 1);
            assert_eq!(below.to(), bucket.from());
            assert!(below < bucket && below.numbers().end <= number);
            let mirrored = bucket.mirrored();
            assert!(mirrored.numbers().contains(&!number), "{mirrored:?}");
            assert_eq!(NumberBucket::from_number(!number), mirrored);
        }
        let last = NumberBucket::count(u64::BITS) - 1;
        assert_eq!(NumberBucket::place(u64::MAX), last);
        let last = NumberBucket::at_place(last).unwrap();
        assert_eq!(last.to(), 1 << 64);
        assert_eq!(NumberBucket::from_number(i128::MAX), last);
        assert_eq!(NumberBucket::at_place(NumberBucket::count(u64::BITS)), None);
    }
}

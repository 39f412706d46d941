//! Numbers that can be summed up: integers and floats, each with an order and buckets.

/// Sub-buckets of each power of two: a bucket is at most 1/128 of its values wide.
const SUB_BITS: u32 = 7;
/// The bucket of 0 among integers; below it are those of negative ones.
const ZERO: u32 = 1 << 13;

/// A number with an order, and a bucket that it falls into. Buckets have the order of their numbers, and the
/// middle of a bucket differs from each number in it by at most 1/256 of that number. A bucket has its lower edge and not its upper one, so that powers of
/// two, which are edges, are in it with what is above them, below 0 as above it.
pub(crate) trait Number: Copy + Eq + Ord + std::hash::Hash {
    /// Its bucket.
    fn bucket(self) -> u32;
    /// The middle of a bucket.
    fn middle(bucket: u32) -> Self;
    /// The nearest float.
    fn approximate(self) -> f64;
    /// The number, whichever kind it is of.
    fn scalar(self) -> Scalar;
}

/// An integer or a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// An integer.
    Integer(Integer),
    /// A float.
    Float(Float),
}

impl Scalar {
    /// The integer, of any size.
    pub fn integer(number: impl Into<i128>) -> Self {
        Self::Integer(Integer(number.into()))
    }

    /// The nearest float.
    pub fn approximate(self) -> f64 {
        match self {
            Self::Integer(number) => number.approximate(),
            Self::Float(number) => number.value(),
        }
    }
}

/// An integer: any of `i64` and `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(
    /// The number.
    pub i128,
);

impl Number for Integer {
    #[inline]
    fn bucket(self) -> u32 {
        let below = u64::from(self.0 < 0);
        let magnitude = self.0.unsigned_abs() as u64 - below;
        let bits = 64 - magnitude.leading_zeros();
        let place = match bits.checked_sub(SUB_BITS + 1) {
            None | Some(0) => magnitude as u32,
            Some(shift) => (shift << SUB_BITS) + (magnitude >> shift) as u32,
        };
        if self.0 < 0 {
            ZERO - 1 - place
        } else {
            ZERO + place
        }
    }

    fn middle(bucket: u32) -> Self {
        let is_negative = bucket < ZERO;
        let place = bucket.abs_diff(ZERO) - u32::from(is_negative);
        let shift = (place >> SUB_BITS).saturating_sub(1);
        let first = i128::from(place - (shift << SUB_BITS)) << shift;
        let half = (1i128 << shift) / 2;
        Self(match is_negative {
            true => -(first + half.max(1)),
            false => first + half,
        })
    }

    fn approximate(self) -> f64 {
        self.0 as f64
    }

    fn scalar(self) -> Scalar {
        Scalar::Integer(self)
    }
}

/// A float that is a number, as a key with the order of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Float {
    key: u64,
    /// Whether it was of 4 bytes, which decides how many digits it needs.
    single: bool,
}

impl Float {
    /// A float of 8 bytes; `None` for NaN.
    #[inline]
    pub fn double(number: f64) -> Option<Self> {
        Self::new(number, false)
    }

    /// A float of 4 bytes; `None` for NaN.
    #[inline]
    pub(crate) fn single(number: f32) -> Option<Self> {
        Self::new(f64::from(number), true)
    }

    fn new(number: f64, single: bool) -> Option<Self> {
        let bits = number.to_bits();
        let key = if bits >> 63 == 1 {
            !bits
        } else {
            bits | 1 << 63
        };
        (!number.is_nan()).then_some(Self { key, single })
    }

    /// Whether it was of 4 bytes, so that as many digits distinguish it from others.
    pub const fn is_single(self) -> bool {
        self.single
    }

    /// Its value.
    pub const fn value(self) -> f64 {
        let bits = if self.key >> 63 == 1 {
            self.key & !(1 << 63)
        } else {
            !self.key
        };
        f64::from_bits(bits)
    }
}

/// Bits of a float's key below those that make its bucket.
const FLOAT_SHIFT: u32 = 52 - SUB_BITS;
/// Keys of floats.
const NEGATIVE_INFINITY: u64 = !f64::NEG_INFINITY.to_bits();
const ZERO_KEY: u64 = 1 << 63;
const POSITIVE_INFINITY: u64 = f64::INFINITY.to_bits() | 1 << 63;

impl Number for Float {
    #[inline]
    fn bucket(self) -> u32 {
        // The key of a negative power of two is the last before those above it. Infinity has a bucket of its own.
        let is_inner = self.key >> 63 == 0 && self.key != NEGATIVE_INFINITY;
        ((self.key + u64::from(is_inner)) >> FLOAT_SHIFT) as u32
    }

    fn middle(bucket: u32) -> Self {
        let first = u64::from(bucket) << FLOAT_SHIFT;
        let key = match first {
            // 0 and the least floats above it, and infinities.
            ZERO_KEY | POSITIVE_INFINITY => first,
            _ if bucket == (NEGATIVE_INFINITY >> FLOAT_SHIFT) as u32 => NEGATIVE_INFINITY,
            _ => (first | 1 << (FLOAT_SHIFT - 1)) - u64::from(first >> 63 == 0),
        };
        let double = Self { key, single: false };
        let value = double.value();
        // As of 4 bytes, if it can be one, so that it is shown with as few digits as are needed.
        let single = f64::from(value as f32) == value;
        Self { key, single }
    }

    fn approximate(self) -> f64 {
        self.value()
    }

    fn scalar(self) -> Scalar {
        Scalar::Float(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_buckets_keep_the_order_and_the_promised_error() {
        let mut numbers: Vec<i128> = vec![0, 1, 127, 128, 255, 256, 257, 1000, 123_456_789];
        for bit in 0..64 {
            let power = 1i128 << bit;
            numbers.extend([power - 1, power, power + 1, power + power / 3]);
        }
        numbers.retain(|&number| number <= i128::from(u64::MAX));
        numbers.extend(numbers.clone().iter().map(|number| -number));
        numbers.retain(|&number| number >= i128::from(i64::MIN));
        numbers.sort_unstable();
        for pair in numbers.windows(2) {
            assert!(
                Integer(pair[0]).bucket() <= Integer(pair[1]).bucket(),
                "{pair:?}"
            );
        }
        for number in numbers {
            let middle = Integer::middle(Integer(number).bucket()).0;
            assert_eq!(Integer(middle).bucket(), Integer(number).bucket());
            assert!(
                (middle - number).unsigned_abs() * 256 <= number.unsigned_abs(),
                "{number} is in the bucket of {middle}"
            );
        }
    }

    #[test]
    fn float_buckets_keep_the_order_and_the_promised_error() {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -1e-300,
            -0.0,
            0.0,
            5e-324,
            1e-9,
            0.1,
            1.0,
            3.7,
            1e300,
            f64::INFINITY,
        ];
        let keys: Vec<Float> = numbers
            .iter()
            .filter_map(|&number| Float::double(number))
            .collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().map(|key| key.bucket()).is_sorted());
        for (key, number) in keys.iter().zip(numbers) {
            assert_eq!(key.value().to_bits(), number.to_bits());
            let middle = Float::middle(key.bucket()).value();
            let is_near = (middle - number).abs() <= number.abs() / 256.0;
            let is_exact = middle == number || number.is_subnormal();
            assert!(is_exact || number.is_normal() && is_near, "{number}");
        }
        assert_eq!(Float::double(f64::NAN), None);
    }

    #[test]
    fn powers_of_two_are_in_the_bucket_above_them() {
        for power in [0, 7, 8, 9, 20, 62] {
            let edge = 1_i128 << power;
            for edge in [edge, -edge] {
                assert!(Integer(edge - 1).bucket() < Integer(edge).bucket());
                assert!(Integer::middle(Integer(edge).bucket()).0 >= edge);
            }
        }
        for power in [-300, -1, 0, 1, 60, 300] {
            let edge = 2_f64.powi(power);
            for edge in [edge, -edge] {
                let bucket = Float::double(edge).unwrap().bucket();
                let below = Float::double(edge.next_down()).unwrap().bucket();
                assert!(below < bucket, "{edge}");
                assert!(Float::middle(bucket).value() >= edge);
            }
        }
    }
}

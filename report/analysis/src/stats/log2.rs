//! Buckets that are powers of two.
//!
//! Numbers are divided at 0, 1, 2, 4, …, below 0 as above it. Times are divided at 1, 2, 4, … 512 of each unit, so that a
//! boundary is a round number: 512us is followed by 1ms.

use crate::stats::number::{Float, Integer, Scalar};

/// The exponent of the least float above 0.
const MIN_EXPONENT: i32 = -1074;

/// What is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketKind {
    Integer,
    /// ns.
    Time,
    Float,
}

/// Index of the bucket of a number: the order is that of the numbers. A bucket has its lower edge and not its upper one, below 0 as above it: -4 is in
/// [-4, -2), as 4 is in [4, 8).
pub(crate) trait Log2 {
    fn index(self, kind: BucketKind) -> i32;
}

impl Log2 for Integer {
    fn index(self, kind: BucketKind) -> i32 {
        // A negative number and its bucket's lower edge: the greatest magnitude is that edge, so one less has the exponent.
        let below = u128::from(self.0 < 0);
        let magnitude = self.0.unsigned_abs() - below;
        let index = match (magnitude, kind) {
            (0, _) => 0,
            (_, BucketKind::Time) => time_index(magnitude),
            _ => magnitude.ilog2() as i32 + 1,
        };
        if self.0 < 0 { -1 - index } else { index }
    }
}

impl Log2 for Float {
    fn index(self, _: BucketKind) -> i32 {
        let number = self.value();
        if number == 0.0 {
            return 0;
        }
        let bits = number.abs().to_bits();
        // The next float towards 0 has the exponent of a negative number's bucket, as with integers.
        let bits = bits - u64::from(number < 0.0);
        let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        let index = match (exponent, fraction) {
            (0, 0) => 0,
            (0, fraction) => fraction.ilog2() as i32 + 1,
            _ => exponent - 1023 - MIN_EXPONENT + 1,
        };
        if number < 0.0 { -1 - index } else { index }
    }
}

/// Ten buckets a unit.
fn time_index(ns: u128) -> i32 {
    let mut unit = 1;
    let mut index = 1;
    while ns >= unit * 1000 && index < 31 {
        unit *= 1000;
        index += 10;
    }
    index + ((ns / unit).ilog2() as i32).min(if index == 31 { 60 } else { 9 })
}

/// Where a bucket begins: its least number.
fn edge(index: i32, kind: BucketKind) -> f64 {
    let Some(place) = index.unsigned_abs().checked_sub(1) else {
        return 0.0;
    };
    let edge = match kind {
        BucketKind::Integer => power_of_two(place as i32),
        BucketKind::Time => {
            let unit = (place / 10).min(3);
            1000f64.powi(unit as i32) * power_of_two((place - 10 * unit) as i32)
        }
        BucketKind::Float => power_of_two(place as i32 + MIN_EXPONENT),
    };
    if index < 0 { -edge } else { edge }
}

/// A power of two, also of the least floats; infinity beyond the greatest.
fn power_of_two(power: i32) -> f64 {
    let bits = match power - MIN_EXPONENT {
        fraction @ 0..52 => 1 << fraction,
        above => u64::try_from(above - 51).unwrap_or(0).min(2047) << 52,
    };
    f64::from_bits(bits)
}

/// Where a bucket begins: its least number.
pub(crate) fn from(index: i32, kind: BucketKind) -> Scalar {
    let edge = edge(index, kind);
    match (kind, Float::double(edge)) {
        (BucketKind::Float, Some(edge)) => Scalar::Float(edge),
        // A power of two within 64 bits, or a round time: exact.
        _ => Scalar::integer(edge as i128),
    }
}

/// Where a bucket ends: the least number above all that it can have; `None` for that of infinity.
pub(crate) fn to(index: i32, kind: BucketKind) -> Option<Scalar> {
    (edge(index, kind) < f64::INFINITY).then(|| from(index + 1, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_the_order_of_their_numbers() {
        for kind in [BucketKind::Integer, BucketKind::Time] {
            let mut numbers: Vec<i128> = (0..64).map(|bit| 1i128 << bit).collect();
            numbers.extend((0..20).map(|power| 10i128.pow(power)));
            numbers.extend(
                numbers
                    .clone()
                    .iter()
                    .flat_map(|number| [number - 1, -number]),
            );
            numbers.sort_unstable();
            let indices: Vec<i32> = numbers
                .iter()
                .map(|&number| Integer(number).index(kind))
                .collect();
            assert!(indices.is_sorted(), "{kind:?}");
            for (number, index) in numbers.into_iter().zip(indices) {
                let [from, to] = [index, index + 1].map(|index| edge(index, kind) as i128);
                assert!(
                    (from..to).contains(&number),
                    "{number} is in [{from}, {to})"
                );
            }
        }
        let times = [1, 10, 11, 20, 21, 31].map(|index| from(index, BucketKind::Time));
        let expected = [1, 512, 1_000, 512_000, 1_000_000, 1_000_000_000];
        assert_eq!(times, expected.map(Scalar::integer));
    }

    #[test]
    fn each_number_is_between_the_edges_of_its_bucket() {
        let bucket = |number: i128| {
            let index = Integer(number).index(BucketKind::Integer);
            [index, index + 1].map(|index| from(index, BucketKind::Integer))
        };
        for (number, expected) in [
            (-8, [-8, -4]),
            (-5, [-8, -4]),
            (-4, [-4, -2]),
            (-3, [-4, -2]),
            (-2, [-2, -1]),
            (-1, [-1, 0]),
            (0, [0, 1]),
            (1, [1, 2]),
            (4, [4, 8]),
            (i128::from(i64::MIN), [-1_i128 << 63, -1 << 62]),
            (i128::from(i64::MIN) + 1, [-1_i128 << 63, -1 << 62]),
            (i128::from(u64::MAX), [1_i128 << 63, 1 << 64]),
        ] {
            assert_eq!(bucket(number), expected.map(Scalar::integer), "{number}");
        }
        let mut floats = vec![f64::NEG_INFINITY, f64::MIN, -5e-324, 0.0, 5e-324, f64::MAX];
        floats.extend((-1074..1024).flat_map(|power| {
            let edge = power_of_two(power);
            let [below, above] = [edge.to_bits() - 1, edge.to_bits() + 1].map(f64::from_bits);
            [below, edge, above, -below, -edge, -above]
        }));
        for float in floats {
            let index = Float::double(float).unwrap().index(BucketKind::Float);
            let [from, to] = [index, index + 1].map(|index| edge(index, BucketKind::Float));
            assert!((from..to).contains(&float), "{float} is in [{from}, {to})");
        }
        let index = Float::double(f64::INFINITY)
            .unwrap()
            .index(BucketKind::Float);
        assert_eq!(to(index, BucketKind::Float), None);
        assert!(to(index - 1, BucketKind::Float).is_some());
    }
}

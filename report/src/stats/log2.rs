//! Buckets that are powers of two.
//!
//! Numbers are divided at 0, 1, 2, 4, …, below 0 as above it. Times are divided at 1, 2, 4, … 512 of each unit, so that a
//! boundary is a round number: 512us is followed by 1ms.

use crate::stats::number::{Float, Integer, Scalar};

/// Exponents of floats begin here.
const LEAST_EXPONENT: i32 = -1100;

/// What is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketKind {
    Integer,
    /// ns.
    Time,
    Float,
}

/// Index of the bucket of a number: the order is that of the numbers.
pub(crate) trait Log2 {
    fn index(self, kind: BucketKind) -> i32;
}

impl Log2 for Integer {
    fn index(self, kind: BucketKind) -> i32 {
        let magnitude = self.0.unsigned_abs();
        let index = match (magnitude, kind) {
            (0, _) => 0,
            (_, BucketKind::Time) => time_index(magnitude),
            _ => magnitude.ilog2() as i32 + 1,
        };
        if self.0 < 0 { -index } else { index }
    }
}

impl Log2 for Float {
    fn index(self, _: BucketKind) -> i32 {
        let number = self.value();
        if number == 0.0 {
            return 0;
        }
        let exponent = number.abs().log2().floor();
        let exponent = exponent.clamp(f64::from(LEAST_EXPONENT), 1024.0) as i32;
        let index = exponent - LEAST_EXPONENT + 1;
        if number < 0.0 { -index } else { index }
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

/// Where a bucket begins: above 0 its least number, below 0 its greatest.
fn edge(index: i32, kind: BucketKind) -> f64 {
    let Some(place) = index.unsigned_abs().checked_sub(1) else {
        return 0.0;
    };
    let edge = match kind {
        BucketKind::Integer => 2f64.powi(place as i32),
        BucketKind::Time => {
            let unit = (place / 10).min(3);
            1000f64.powi(unit as i32) * 2f64.powi((place - 10 * unit) as i32)
        }
        BucketKind::Float => 2f64.powi(place as i32 + LEAST_EXPONENT),
    };
    if index < 0 { -edge } else { edge }
}

/// Where a bucket begins.
pub(crate) fn from(index: i32, kind: BucketKind) -> Scalar {
    let edge = edge(index, kind);
    match (kind, Float::double(edge)) {
        (BucketKind::Float, Some(edge)) => Scalar::Float(edge),
        // A power of two within 64 bits, or a round time: exact.
        _ => Scalar::integer(edge as i128),
    }
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
            for (number, index) in numbers.into_iter().zip(indices).filter(|(n, _)| *n > 0) {
                assert!(edge(index, kind) <= number as f64, "{number}");
                assert!((number as f64) < edge(index + 1, kind) * 1.0001, "{number}");
            }
        }
        let times = [1, 10, 11, 20, 21, 31].map(|index| from(index, BucketKind::Time));
        let expected = [1, 512, 1_000, 512_000, 1_000_000, 1_000_000_000];
        assert_eq!(times, expected.map(Scalar::integer));
        let index = Integer(-5).index(BucketKind::Integer);
        assert_eq!(from(index, BucketKind::Integer), Scalar::integer(-4));
        let floats = [-3.0, -0.1, 0.0, 1e-300, 0.5, 1.0, 1e300];
        let indices = floats.map(|float| Float::double(float).unwrap().index(BucketKind::Float));
        assert!(indices.is_sorted());
        assert_eq!(from(indices[4], BucketKind::Float).approximate(), 0.5);
    }
}

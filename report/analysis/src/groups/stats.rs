//! `--value`: the numbers of an argument, summed up group by group.

use usdtrec_format::Value;

use crate::question::GroupOrder;
use crate::stats::argument::ArgumentStats;
use crate::stats::distribution::{Distribution, Extremes, Quantile};
use crate::stats::exact_sum::ExactSum;
use crate::stats::number::{Number, Scalar};

/// Groups whose numbers are summed up: each takes some kilobytes.
pub(crate) const MAX_STATS: usize = 1 << 14;

/// Numbers of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueStats {
    held: ArgumentStats,
    integers: i128,
    floats: ExactSum,
}

/// Statistics of the numbers of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueFacts {
    /// Number of numbers.
    pub count: u64,
    /// The figure to sort by.
    pub(crate) weight: f64,
    /// `None` if there are no numbers.
    pub figures: Option<ValueFigures>,
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub exact: bool,
}

/// Figures of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueFigures {
    /// Their sum.
    pub sum: Sum,
    /// Their arithmetic mean.
    pub mean: f64,
    /// The smallest one.
    pub min: Scalar,
    /// The median.
    pub p50: Scalar,
    /// The 0.90 quantile.
    pub p90: Scalar,
    /// The 0.99 quantile.
    pub p99: Scalar,
    /// The greatest one.
    pub max: Scalar,
}

/// A sum, which may be NaN if it is of floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    /// Of integers alone.
    Integers(i128),
    /// Of floats, or of both.
    Floats(f64),
}

/// Number of numbers, and the greatest finite one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueRange {
    count: u64,
    greatest: f64,
}

impl ValueRange {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, value: &Value) {
        if let Some(number) = number(value) {
            self.count += 1;
            if number.is_finite() {
                self.greatest = self.greatest.max(number);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.greatest = self.greatest.max(other.greatest);
    }

    /// A power of two by which all of them can be multiplied, so that their sum is below 2^63.
    pub(crate) fn scale(self) -> f64 {
        let bits = |number: f64| number.max(f64::MIN_POSITIVE).log2().ceil() as i32;
        let bits = bits(self.greatest) + bits(self.count as f64);
        2_f64.powi((62 - bits).clamp(-1000, 1000))
    }
}

/// A value times a scale, rounded up; a negative number, or no number, is 0.
pub(crate) fn scaled(value: &Value, scale: f64) -> u64 {
    number(value).map_or(0, |number| (number * scale).ceil() as u64)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Unsigned(number) => Some(*number as f64),
        Value::Signed(number) => Some(*number as f64),
        Value::Float32(number) if !number.is_nan() => Some((*number).into()),
        Value::Float64(number) if !number.is_nan() => Some(*number),
        _ => None,
    }
}

impl ValueStats {
    /// Adds a value; what is no number does not count.
    pub(crate) fn add(&mut self, value: &Value) {
        match value {
            Value::Unsigned(number) => self.integers += i128::from(*number),
            Value::Signed(number) => self.integers += i128::from(*number),
            Value::Float32(number) if !number.is_nan() => self.floats.add(f64::from(*number)),
            Value::Float64(number) if !number.is_nan() => self.floats.add(*number),
            _ => return,
        }
        self.held.add(value);
    }

    /// Adds those of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.held.settle();
        self.held.merge(other.held);
        self.integers += other.integers;
        self.floats.merge(&other.floats);
    }

    /// The statistics, sorted by a figure.
    pub(crate) fn facts(mut self, order: GroupOrder) -> ValueFacts {
        self.held.settle();
        let (integers, floats) = (&self.held.integers, &mut self.held.floats);
        if floats.count() == 0 {
            return facts(integers, Sum::Integers(self.integers), order);
        }
        if integers.count() > 0 {
            // Of two sites, or builds, of a probe one may have integers and the other floats.
            floats.merge(integers.to_floats());
            // In two parts, each of which is a float.
            let low = self.integers & ((1 << 50) - 1);
            self.floats.add((self.integers - low) as f64);
            self.floats.add(low as f64);
        }
        facts(floats, Sum::Floats(self.floats.sum()), order)
    }
}

fn facts<N: Number>(numbers: &Distribution<N>, sum: Sum, order: GroupOrder) -> ValueFacts {
    let Some(Extremes {
        least: min,
        greatest: max,
    }) = numbers.ends()
    else {
        return ValueFacts::default();
    };
    // There is one, as there are numbers.
    let at = |thousandths| match numbers.quantile(thousandths) {
        Some(Quantile::Exact(number) | Quantile::Near(number)) => number,
        None => max,
    };
    let total = match sum {
        Sum::Integers(sum) => sum as f64,
        Sum::Floats(sum) => sum,
    };
    let mean = match sum {
        Sum::Integers(sum) => quotient(sum, numbers.count()),
        Sum::Floats(sum) => sum / numbers.count() as f64,
    };
    ValueFacts {
        count: numbers.count(),
        weight: match order {
            GroupOrder::Count => 0.0,
            GroupOrder::Total | GroupOrder::Sum | GroupOrder::Own | GroupOrder::Part(_) => total,
            GroupOrder::Mean => mean,
            GroupOrder::P50 => at(500).approximate(),
            GroupOrder::P90 => at(900).approximate(),
            GroupOrder::P99 => at(990).approximate(),
            GroupOrder::P999 => at(999).approximate(),
            GroupOrder::Max => max.approximate(),
        },
        figures: Some(ValueFigures {
            sum,
            mean,
            min: min.scalar(),
            p50: at(500).scalar(),
            p90: at(900).scalar(),
            p99: at(990).scalar(),
            max: max.scalar(),
        }),
        exact: numbers.values().is_some(),
    }
}

/// The float nearest to a quotient; 0 if the count is.
pub(crate) fn quotient(sum: i128, count: u64) -> f64 {
    if sum == 0 || count == 0 {
        return 0.0;
    }
    // At least 63 bits of the quotient, the last of which says whether there are more: they are rounded once, to the 53 of a float.
    let shift = sum.unsigned_abs().leading_zeros();
    let (shifted, count) = (sum.unsigned_abs() << shift, u128::from(count));
    let bits = (shifted / count) | u128::from(shifted % count > 0);
    let magnitude = bits as f64 * 2_f64.powi(-(shift as i32));
    if sum < 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_integers_are_exact_and_have_floats() {
        let mut stats = ValueStats::default();
        for number in [u64::MAX, u64::MAX, 1] {
            stats.add(&Value::Unsigned(number));
        }
        let mut other = ValueStats::default();
        other.add(&Value::Signed(-1));
        stats.merge(other);
        let facts = stats.facts(GroupOrder::Sum);
        let figures = facts.figures.unwrap();
        assert_eq!(facts.count, 4);
        assert_eq!(figures.sum, Sum::Integers(36_893_488_147_419_103_230));
        assert_eq!(figures.min, Scalar::integer(-1));
        assert_eq!(figures.p50, Scalar::integer(1));
        assert_eq!(figures.mean, 36_893_488_147_419_103_230.0 / 4.0);
        let mut floats = ValueStats::default();
        for number in [0.5, 1.5] {
            floats.add(&Value::Float64(number));
        }
        let figures = floats.clone().facts(GroupOrder::Sum).figures.unwrap();
        assert_eq!((figures.sum, figures.mean), (Sum::Floats(2.0), 1.0));
        let mut both = floats.clone();
        both.add(&Value::Unsigned(4));
        let facts = both.facts(GroupOrder::Sum);
        let figures = facts.figures.unwrap();
        assert_eq!((facts.count, figures.sum), (3, Sum::Floats(6.0)));
        assert_eq!(
            ValueStats::default().facts(GroupOrder::Sum),
            ValueFacts::default()
        );
    }

    #[test]
    fn means_are_rounded_once() {
        assert_eq!(quotient(2, 60), 2.0 / 60.0);
        assert_eq!(quotient(-2, 60), -2.0 / 60.0);
        assert_eq!(quotient(0, 60).to_bits(), 0);
        assert_eq!(quotient(1_487_399_235, 60), 24_789_987.25);
        // The quotient 1 + 1.5 * 2^-52 is as near to 1 + 2^-52 as to the even 1 + 2^-51.
        let sum = (1 << 53) + 3;
        assert_eq!(quotient(sum << 10, 1 << 63), 1.0 + 2_f64.powi(-51));
        assert_eq!(quotient(i128::from(u64::MAX) * 3, 3), u64::MAX as f64);
        assert_eq!(quotient(i128::MIN, 1), i128::MIN as f64);
    }
}

//! What an argument holds over all samples.

use usdtrec_format::{Missing, Value};

use crate::stats::distribution::Distribution;
use crate::stats::number::{Float, Integer};
use crate::stats::reasons::Reasons;
use crate::stats::string_counts::StringCounts;

/// What an argument held.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentStats {
    pub(crate) integers: Distribution<Integer>,
    pub(crate) floats: Distribution<Float>,
    pub(crate) strings: StringCounts,
    /// Floats that are no number.
    pub(crate) nan: u64,
    /// Strings that are not there, as the pointer to them is null.
    pub(crate) nulls: u64,
    pub(crate) missing: Reasons,
}

impl ArgumentStats {
    /// Counts a value.
    #[inline]
    pub(crate) fn add(&mut self, value: &Value) {
        match value {
            Value::Unsigned(number) => self.integers.add(Integer(i128::from(*number))),
            Value::Signed(number) => self.integers.add(Integer(i128::from(*number))),
            Value::Float32(number) => self.add_float(Float::single(*number)),
            Value::Float64(number) => self.add_float(Float::double(*number)),
            Value::String(string) => {
                self.strings.add(&string.bytes);
                if string.cut {
                    self.strings.add_cut();
                }
            }
            Value::Missing(Missing::Null) => self.nulls += 1,
            Value::Missing(Missing::Absent) => {}
            Value::Missing(missing) => self.missing.add(missing, 1),
            _ => self.missing.add_other(),
        }
    }

    fn add_float(&mut self, number: Option<Float>) {
        match number {
            Some(number) => self.floats.add(number),
            None => self.nan += 1,
        }
    }

    /// Counts what is not yet counted.
    pub(crate) fn settle(&mut self) {
        self.integers.settle();
        self.floats.settle();
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        self.integers.merge(other.integers);
        self.floats.merge(other.floats);
        self.strings.merge(other.strings);
        self.nan += other.nan;
        self.nulls += other.nulls;
        self.missing.merge(other.missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::frequency::{Frequency, total};
    use crate::stats::reasons::REASONS;

    #[test]
    fn reasons_are_counted_by_kind() {
        let mut argument = ArgumentStats::default();
        for at in 0..100 {
            argument.add(&Value::Missing(Missing::Memory(at)));
        }
        argument.add(&Value::Missing(Missing::Register("xmm0")));
        argument.add(&Value::Float32(f32::NAN));
        argument.add(&Value::Signed(-3));
        let mut other = ArgumentStats::default();
        other.add(&Value::Missing(Missing::Register("xmm0")));
        other.add(&Value::Unsigned(u64::MAX));
        argument.merge(other);
        argument.settle();
        assert_eq!(
            argument.missing.in_words(),
            [
                Frequency::new("memory not captured".to_owned(), 100),
                Frequency::new("xmm0 not captured".to_owned(), 2)
            ]
        );
        assert_eq!(argument.nan, 1);
        let ends = argument.integers.ends().unwrap();
        assert_eq!(ends.least, Integer(-3));
        assert_eq!(ends.greatest, Integer(i128::from(u64::MAX)));
    }

    #[test]
    fn the_number_of_reasons_is_bounded() {
        let mut argument = ArgumentStats::default();
        for at in 0..1000 {
            argument.add(&Value::Missing(Missing::Operand(at.to_string())));
        }
        let words = argument.missing.in_words();
        assert_eq!(words.len(), REASONS + 1);
        assert_eq!(total(&words), 1000);
    }
}

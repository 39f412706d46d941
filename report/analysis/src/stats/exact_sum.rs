//! Sums of floats that do not depend on the order of what is added.

/// Words of a sum: 2162 bits are enough for 2^63 of the greatest floats, and a sign.
const WORDS: usize = 34;
/// Bits of a float after its leading one.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// The least float is 2 to this power.
const LEAST: i32 = f64::MIN_EXP - f64::MANTISSA_DIGITS as i32;

/// A sum in multiples of the least float, of which all finite ones are multiples. So nothing is rounded, and nothing is too great on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExactSum {
    /// In two's complement, the least significant word first; empty for 0.
    words: Vec<u64>,
    /// Sum of infinities.
    infinite: Option<f64>,
}

impl ExactSum {
    /// Adds a number, which is not NaN.
    pub(crate) fn add(&mut self, number: f64) {
        if number.is_infinite() {
            self.infinite = Some(self.infinite.unwrap_or(0.0) + number);
            return;
        }
        let bits = number.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        // Subnormal numbers have the exponent of the least normal ones, and no leading one.
        let (digits, shift) = match (bits >> FRACTION_BITS) as usize & 0x7ff {
            0 => (fraction, 0),
            exponent => (fraction | 1 << FRACTION_BITS, exponent - 1),
        };
        if digits == 0 {
            return;
        }
        let shifted = u128::from(digits) << (shift % 64);
        let words = [shifted as u64, (shifted >> 64) as u64];
        self.add_words(&words, shift / 64, number.is_sign_negative());
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.add_words(&other.words, 0, false);
        if let Some(infinite) = other.infinite {
            self.infinite = Some(self.infinite.unwrap_or(0.0) + infinite);
        }
    }

    /// Adds words from a place on, or subtracts them.
    fn add_words(&mut self, words: &[u64], first: usize, is_negative: bool) {
        if words.is_empty() {
            return;
        }
        self.words.resize(WORDS, 0);
        let add = match is_negative {
            true => u64::overflowing_sub,
            false => u64::overflowing_add,
        };
        let mut carry = false;
        for (at, word) in self.words.iter_mut().skip(first).enumerate() {
            if at >= words.len() && !carry {
                break;
            }
            let (sum, is_over) = add(*word, words.get(at).copied().unwrap_or(0));
            let (sum, is_over_again) = add(sum, carry.into());
            (*word, carry) = (sum, is_over || is_over_again);
        }
    }

    /// The sum, rounded once.
    pub(crate) fn sum(&self) -> f64 {
        if let Some(infinite) = self.infinite {
            return infinite;
        }
        let is_negative = self.words.last().is_some_and(|word| word >> 63 == 1);
        let mut magnitude = Self::default();
        magnitude.add_words(&self.words, 0, is_negative);
        let words = &magnitude.words;
        let Some(top) = words.iter().rposition(|word| *word != 0) else {
            return 0.0;
        };
        // 64 bits from the leading one on, the last of which says whether there are more: they are rounded to the 53 of a float.
        let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or(0);
        let zeros = word(Some(top)).leading_zeros();
        let both = u128::from(word(Some(top))) << 64 | u128::from(word(top.checked_sub(1)));
        let both = both << zeros;
        let others = words.iter().take(top.saturating_sub(1));
        let is_more = both as u64 != 0 || others.into_iter().any(|word| *word != 0);
        let bits = (both >> 64) as u64 | u64::from(is_more);
        let power = 64 * top as i32 - zeros as i32 + LEAST;
        // In two steps, as the power may be less than that of any float.
        let sum = bits as f64 * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2);
        if is_negative { -sum } else { sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: impl IntoIterator<Item = f64>) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum
    }

    #[test]
    fn the_order_does_not_matter() {
        let numbers: Vec<f64> = (1..2000_i32)
            .map(|at| f64::from(at).sqrt() * 10_f64.powi(at % 40 - 20) * f64::from(1 - at % 2 * 2))
            .collect();
        let forward = sum(numbers.iter().copied());
        let mut halves = sum(numbers.iter().rev().step_by(2).copied());
        halves.merge(&sum(numbers.iter().rev().skip(1).step_by(2).copied()));
        assert_eq!(forward.sum().to_bits(), halves.sum().to_bits());
    }

    #[test]
    fn nothing_is_lost_on_the_way() {
        let least = f64::from_bits(1);
        for (numbers, expected) in [
            (vec![1e300, 1.0, -1e300], 1.0),
            (vec![f64::MAX, f64::MAX, -f64::MAX, -f64::MAX, least], least),
            (vec![f64::MAX, f64::MAX], f64::INFINITY),
            (vec![-f64::MAX, -f64::MAX], f64::NEG_INFINITY),
            (vec![-least, -0.0], -least),
            (vec![0.1, 0.2, -0.3], 2_f64.powi(-55)),
            (vec![-f64::MIN_POSITIVE, least], least - f64::MIN_POSITIVE),
            (vec![f64::INFINITY, -1.0], f64::INFINITY),
            (vec![], 0.0),
            // Half-way cases are even, but for what is below.
            (vec![2_f64.powi(53), 1.0], 2_f64.powi(53)),
            (vec![2_f64.powi(53), 1.0, least], 2_f64.powi(53) + 2.0),
            (vec![2_f64.powi(53), 1.0, -least], 2_f64.powi(53)),
            (vec![2_f64.powi(53), 3.0], 2_f64.powi(53) + 4.0),
        ] {
            let found = sum(numbers.iter().copied()).sum();
            assert_eq!(found.to_bits(), expected.to_bits(), "{numbers:?} {found}");
            // As of numbers with the other sign.
            let other = sum(numbers.iter().map(|number| -number)).sum();
            assert_eq!(other + 0.0, 0.0 - expected, "{numbers:?}");
        }
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).sum().is_nan());
    }
}

//! Numbers as text.

use usdtrec_format::IntegerBits;

use crate::text::buffer::Text;

/// A byte in each of eight.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The eight lowest decimal digits of a number below 10^8, one in each byte, the highest in the lowest byte.
///
/// Halves are divided side by side in one word; the factors divide exactly in the ranges that occur (checked by test).
#[inline(always)]
const fn decimal_digits(number: u32) -> u64 {
    let (high, low) = (number / 10_000, number % 10_000);
    let fours = high as u64 | (low as u64) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// The eight hexadecimal digits of a number in ASCII, the highest first.
#[inline(always)]
const fn hex_digits(number: u32) -> [u8; 8] {
    let halves = (number as u64 | (number as u64) << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes | bytes << 4) & each(15);
    let letters = ((digits + each(6)) >> 4) & each(1);
    (digits + each(b'0') + letters * (b'a' - b'0' - 10) as u64).to_be_bytes()
}

/// The number of values of eight decimal digits.
const EIGHT: u64 = 100_000_000;

impl Text {
    /// Appends a number in decimal.
    #[inline]
    pub fn unsigned(&mut self, number: u64) {
        if number < EIGHT {
            self.decimal(number as u32);
        } else if number < EIGHT * EIGHT {
            self.decimal((number / EIGHT) as u32);
            self.eight_digits((number % EIGHT) as u32);
        } else {
            let rest = number / EIGHT;
            self.decimal((rest / EIGHT) as u32);
            self.eight_digits((rest % EIGHT) as u32);
            self.eight_digits((number % EIGHT) as u32);
        }
    }

    /// Appends a number in decimal, with a sign if negative.
    #[inline]
    pub fn signed(&mut self, number: i64) {
        if number < 0 {
            self.byte(b'-');
        }
        self.unsigned(number.unsigned_abs());
    }

    /// Appends an integer in decimal.
    #[inline]
    pub(crate) fn integer(&mut self, integer: IntegerBits) {
        match integer.is_negative {
            true => self.signed(integer.bits.cast_signed()),
            false => self.unsigned(integer.bits),
        }
    }

    /// Appends a number below 10^8 in decimal.
    #[inline(always)]
    fn decimal(&mut self, number: u32) {
        let digits = decimal_digits(number);
        let zeros = (digits.trailing_zeros() / 8).min(7);
        let text = (digits + each(b'0')) >> (8 * zeros);
        self.append(|room: &mut [u8; 8]| {
            *room = text.to_le_bytes();
            8 - zeros as usize
        });
    }

    /// Appends eight digits, with zeros in front.
    #[inline(always)]
    fn eight_digits(&mut self, number: u32) {
        let text = decimal_digits(number) + each(b'0');
        self.fixed(&text.to_le_bytes());
    }

    /// Appends six digits, with zeros in front, a colon and a blank.
    #[inline(always)]
    pub(crate) fn microseconds(&mut self, number: u32) {
        let text = (decimal_digits(number) + each(b'0')) >> 16;
        self.fixed(&(text | u64::from_le_bytes(*b"\0\0\0\0\0\0: ")).to_le_bytes());
    }

    /// Appends nine digits, with zeros in front, a colon and a blank.
    #[inline(always)]
    pub(crate) fn nanoseconds(&mut self, number: u32) {
        self.microseconds(number / 1000);
        self.drop_last(2);
        let text = (decimal_digits(number % 1000) + each(b'0')) >> 40;
        self.append(|room: &mut [u8; 8]| {
            *room = (text | u64::from_le_bytes(*b"\0\0\0: \0\0\0")).to_le_bytes();
            5
        });
    }

    /// Appends the first `digits` of nine digits, with zeros in front.
    pub fn fraction(&mut self, number: u32, digits: usize) {
        self.eight_digits(number / 10);
        self.decimal(number % 10);
        self.drop_last(9_usize.saturating_sub(digits));
    }

    /// Appends lower-case hexadecimal without leading zeros.
    #[inline]
    pub fn hex(&mut self, number: u64) {
        let zeros = (number | 1).leading_zeros() / 4;
        let first = number << (4 * zeros);
        let halves = [hex_digits((first >> 32) as u32), hex_digits(first as u32)];
        self.append(|room: &mut [u8; 16]| {
            for (half, digits) in room.as_chunks_mut::<8>().0.iter_mut().zip(halves) {
                *half = digits;
            }
            16 - zeros as usize
        });
    }

    /// Appends hexadecimal, right-aligned in 16 columns.
    #[inline]
    pub(crate) fn right_hex(&mut self, number: u64) {
        /// What makes blanks of zeros.
        const BLANKS: u128 = u128::from_ne_bytes([b'0' ^ b' '; 16]);
        let zeros = (number | 1).leading_zeros() / 4;
        let halves = [hex_digits((number >> 32) as u32), hex_digits(number as u32)];
        let mut digits = [0; 16];
        for (half, text) in digits.as_chunks_mut::<8>().0.iter_mut().zip(halves) {
            *half = text;
        }
        let blanks = BLANKS & ((1 << (8 * zeros)) - 1);
        self.fixed(&(u128::from_le_bytes(digits) ^ blanks).to_le_bytes());
    }

    /// Appends the shortest decimal that reads back as the same number; `NaN`, `inf`, `-inf`.
    pub fn float64(&mut self, number: f64) {
        self.string(zmij::Buffer::new().format(number));
    }

    /// As [`float64`](Self::float64), for 4-byte floats.
    pub(crate) fn float32(&mut self, number: f32) {
        self.string(zmij::Buffer::new().format(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Text)) -> String {
        let mut out = Text::default();
        write(&mut out);
        out.into_string()
    }

    #[test]
    fn decimals() {
        let mut numbers: Vec<u64> = (0..20_000).chain([u64::MAX]).collect();
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        numbers.extend(powers.flat_map(|power| [power - 1, power, power + 1, power + power / 2]));
        numbers.extend((0..64).map(|bit| 1 << bit));
        for number in numbers {
            assert_eq!(text(|out| out.unsigned(number)), number.to_string());
            let signed = number as i64;
            assert_eq!(text(|out| out.signed(signed)), signed.to_string());
        }
        for half in 0..10_000 {
            let number = half * 10_000 + (9_999 - half);
            assert_eq!(text(|out| out.eight_digits(number)), format!("{number:08}"));
        }
        for number in [0, 9, 42, 123_456_789, 999_999_999] {
            let (micro, nano) = (number / 1000, number);
            assert_eq!(text(|out| out.microseconds(micro)), format!("{micro:06}: "));
            assert_eq!(text(|out| out.nanoseconds(nano)), format!("{nano:09}: "));
            for digits in 0..=9 {
                let expected = &format!("{nano:09}")[..digits];
                assert_eq!(text(|out| out.fraction(nano, digits)), expected);
            }
        }
    }

    #[test]
    fn hexadecimals() {
        for number in [0, 1, 0xf, 0x10, 0xfff, 0x1000, 0x55de_d7a8_7110, u64::MAX] {
            assert_eq!(text(|out| out.hex(number)), format!("{number:x}"));
            assert_eq!(text(|out| out.right_hex(number)), format!("{number:16x}"));
        }
    }

    #[test]
    fn floats_are_shortest_and_read_back() {
        assert_eq!(text(|out| out.float64(1.5)), "1.5");
        assert_eq!(text(|out| out.float64(0.1)), "0.1");
        assert_eq!(text(|out| out.float32(0.1)), "0.1");
        assert_eq!(text(|out| out.float64(1e300)), "1e+300");
        assert_eq!(text(|out| out.float64(-0.0)), "-0.0");
        assert_eq!(text(|out| out.float64(3.0)), "3.0");
        assert_eq!(text(|out| out.float64(f64::NAN)), "NaN");
        assert_eq!(text(|out| out.float64(f64::NEG_INFINITY)), "-inf");
    }
}

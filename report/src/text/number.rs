//! Numbers as text.

use super::buffer::Text;

const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

const HEX_PAIRS: [[u8; 2]; 256] = {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut number = 0;
    while number < 256 {
        pairs[number] = [DIGITS[number / 16], DIGITS[number % 16]];
        number += 1;
    }
    pairs
};

/// Most digits of a `u64`.
const DIGITS: usize = 20;

/// Powers of ten, the first being 0: a number has as many digits as there are powers up to it.
const POWERS: [u64; DIGITS] = {
    let mut powers = [0; DIGITS];
    let mut power = 1;
    let mut at = 1;
    while at < DIGITS {
        power *= 10;
        powers[at] = power;
        at += 1;
    }
    powers
};

/// Digits of a number in decimal.
#[inline]
fn digits(number: u64) -> usize {
    // 1233 / 4096 is just above the logarithm of 2 to the base of 10.
    let guess = ((64 - (number | 1).leading_zeros()) * 1233 >> 12) as usize;
    guess + usize::from(number >= POWERS[guess % DIGITS])
}

impl Text {
    /// Appends a number in decimal.
    #[inline]
    pub(crate) fn unsigned(&mut self, number: u64) {
        self.append(|room: &mut [u8; DIGITS]| {
            let count = digits(number);
            if let Some(room) = room.get_mut(..count) {
                fill(room, number);
            }
            count
        });
    }

    /// Appends a number in decimal, with a sign if negative.
    #[inline]
    pub(crate) fn signed(&mut self, number: i64) {
        if number < 0 {
            self.byte(b'-');
        }
        self.unsigned(number.unsigned_abs());
    }

    /// Appends `N` digits, with zeros in front; higher digits are dropped.
    #[inline]
    pub(crate) fn zero_padded<const N: usize>(&mut self, number: u64) {
        self.append(|room: &mut [u8; N]| {
            fill(room, number);
            N
        });
    }

    /// Appends lower-case hexadecimal without leading zeros.
    #[inline]
    pub(crate) fn hex(&mut self, number: u64) {
        let pairs: [[u8; 2]; 8] = number
            .to_be_bytes()
            .map(|byte| HEX_PAIRS[usize::from(byte)]);
        let zeros = (number | 1).leading_zeros() as usize / 4;
        self.append(|room: &mut [u8; 16]| {
            let all = pairs.as_flattened();
            for (digit, from) in room.iter_mut().zip(all.get(zeros..).unwrap_or_default()) {
                *digit = *from;
            }
            16 - zeros
        });
    }

    /// Appends hexadecimal, right-aligned in 16 columns.
    pub(crate) fn right_hex(&mut self, number: u64) {
        for _ in 0..(number | 1).leading_zeros() / 4 {
            self.byte(b' ');
        }
        self.hex(number);
    }

    /// Appends the shortest decimal that reads back as the same number; `NaN`, `inf`, `-inf`.
    pub(crate) fn float64(&mut self, number: f64) {
        self.string(ryu::Buffer::new().format(number));
    }

    /// As [`float64`](Self::float64), for 4-byte floats.
    pub(crate) fn float32(&mut self, number: f32) {
        self.string(ryu::Buffer::new().format(number));
    }
}

/// Fills all of `room` with the lowest digits of a number.
#[inline(always)]
fn fill(room: &mut [u8], mut number: u64) {
    let (first, pairs) = room.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        *pair = DIGIT_PAIRS[(number % 100) as usize];
        number /= 100;
    }
    if let [digit] = first {
        *digit = b'0' + (number % 10) as u8;
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
        let mut numbers = vec![0, 1, 9, u64::MAX];
        for power in POWERS {
            numbers.extend([power.saturating_sub(1), power, power + 1, power + power / 2]);
        }
        numbers.extend((0..64).map(|bit| 1 << bit));
        for number in numbers {
            assert_eq!(text(|out| out.unsigned(number)), number.to_string());
            let signed = number as i64;
            assert_eq!(text(|out| out.signed(signed)), signed.to_string());
        }
        assert_eq!(text(|out| out.zero_padded::<6>(42)), "000042");
        assert_eq!(text(|out| out.zero_padded::<9>(1_234_567)), "001234567");
        assert_eq!(text(|out| out.zero_padded::<3>(1_234)), "234");
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
        assert_eq!(text(|out| out.float64(1e300)), "1e300");
        assert_eq!(text(|out| out.float64(-0.0)), "-0.0");
        assert_eq!(text(|out| out.float64(3.0)), "3.0");
        assert_eq!(text(|out| out.float64(f64::NAN)), "NaN");
        assert_eq!(text(|out| out.float64(f64::NEG_INFINITY)), "-inf");
    }
}

//! Numbers as text.

const DIGIT_PAIRS: [[u8; 2]; 100] = digit_pairs();

const fn digit_pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

/// Decimal.
#[inline]
pub(crate) fn unsigned(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Decimal with a sign if negative.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Decimal with leading zeros, exactly `N` digits, which must be even; higher digits are dropped.
#[inline]
pub(crate) fn zero_padded<const N: usize>(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; N];
    for pair in digits.as_chunks_mut::<2>().0.iter_mut().rev() {
        *pair = DIGIT_PAIRS[(number % 100) as usize];
        number /= 100;
    }
    out.extend_from_slice(&digits);
}

/// Text, right-aligned in `width` bytes.
pub(crate) fn padded(out: &mut Vec<u8>, text: &str, width: usize) {
    let fill = width.saturating_sub(text.chars().count());
    out.extend(std::iter::repeat_n(b' ', fill));
    out.extend_from_slice(text.as_bytes());
}

/// Lower-case hexadecimal without leading zeros.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 16];
    let count = (67 - (number | 1).leading_zeros() as usize) / 4;
    for (digit, shift) in digits.iter_mut().zip((0..count as u32).rev()) {
        *digit = b"0123456789abcdef"[(number >> (4 * shift) & 15) as usize];
    }
    out.extend_from_slice(digits.get(..count).unwrap_or_default());
}

/// The shortest decimal that reads back as the same number; `NaN`, `inf`, `-inf`.
pub(crate) fn float64(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(ryu::Buffer::new().format(number).as_bytes());
}

/// As [`float64`], for 4-byte floats.
pub(crate) fn float32(out: &mut Vec<u8>, number: f32) {
    out.extend_from_slice(ryu::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals() {
        assert_eq!(text(|out| unsigned(out, u64::MAX)), "18446744073709551615");
        assert_eq!(text(|out| signed(out, i64::MIN)), "-9223372036854775808");
        assert_eq!(text(|out| zero_padded::<6>(out, 42)), "000042");
        assert_eq!(text(|out| zero_padded::<6>(out, 1_234_567)), "234567");
        assert_eq!(text(|out| padded(out, "größe", 7)), "  größe");
        assert_eq!(text(|out| padded(out, "long", 2)), "long");
    }

    #[test]
    fn hexadecimals() {
        for number in [0, 1, 0xf, 0x10, 0xfff, 0x1000, 0x55de_d7a8_7110, u64::MAX] {
            assert_eq!(text(|out| hex(out, number)), format!("{number:x}"));
        }
    }

    #[test]
    fn floats_are_shortest_and_read_back() {
        assert_eq!(text(|out| float64(out, 1.5)), "1.5");
        assert_eq!(text(|out| float64(out, 0.1)), "0.1");
        assert_eq!(text(|out| float32(out, 0.1)), "0.1");
        assert_eq!(text(|out| float64(out, 1e300)), "1e300");
        assert_eq!(text(|out| float64(out, -0.0)), "-0.0");
        assert_eq!(text(|out| float64(out, 3.0)), "3.0");
        assert_eq!(text(|out| float64(out, f64::NAN)), "NaN");
        assert_eq!(text(|out| float64(out, f64::NEG_INFINITY)), "-inf");
    }
}

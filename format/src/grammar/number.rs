//! Numbers as compilers and assemblers write them.

use super::Parsed;
use crate::operand::OperandErrorKind;

/// An unsigned integer at the start of a text, decimal or `0x…`, and the rest of the text.
/// `None` if the text does not start with a digit.
pub(super) fn leading(text: &str) -> Option<(Parsed<'_, u64>, &str)> {
    let (radix, digits) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_hexdigit()) => (16, digits),
        _ => (10, text),
    };
    let after = digits.trim_start_matches(|digit: char| digit.is_digit(radix));
    let digits = &digits[..digits.len() - after.len()];
    if digits.is_empty() {
        return None;
    }
    let number = u64::from_str_radix(digits, radix)
        .map_err(|_| OperandErrorKind::NumberRange(digits.to_owned()).at(text));
    Some((number, after))
}

/// A whole text as an integer with an optional sign, in 64 bits: above `i64::MAX` it wraps, as in the assembler. `None`
/// if it is not one.
pub(super) fn integer(text: &str) -> Option<Parsed<'_, i64>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, after) = leading(digits)?;
    if !after.is_empty() {
        return None;
    }
    let signed = |number: u64| match negative {
        false => Ok(number.cast_signed()),
        true => 0_i64
            .checked_sub_unsigned(number)
            .ok_or_else(|| OperandErrorKind::NumberRange(format!("-{number}")).at(text)),
    };
    Some(number.and_then(signed))
}

/// A whole text as a decimal floating-point number (`1.5e+0`, `-0.0`).
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Rust also parses words that may be symbols ("inf").
    if unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

//! Values as text.

use std::io::Write as _;

use usdtrec_format::Value;
use usdtrec_format::escape::escape;

use super::number::{float32, float64, signed, unsigned};
use super::quoted::json_string;

/// A value for people: integers in decimal, floats in shortest form, `<reason>` for what is missing.
#[inline]
pub(crate) fn text_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Unsigned(number) => unsigned(out, *number),
        Value::Signed(number) => signed(out, *number),
        Value::Float32(number) => float32(out, *number),
        Value::Float64(number) => float64(out, *number),
        Value::Missing(missing) => {
            out.push(b'<');
            out.extend_from_slice(escape(&missing.to_string()).as_bytes());
            out.push(b'>');
        }
        other => debug(out, other),
    }
}

/// A value for JSON: numbers as such and exact, `null` for what is missing. JSON has no words for
/// infinities and NaN: they are the strings `"inf"`, `"-inf"`, `"NaN"`.
#[inline]
pub(crate) fn json_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Missing(_) => out.extend_from_slice(b"null"),
        Value::Unsigned(number) => unsigned(out, *number),
        Value::Signed(number) => signed(out, *number),
        Value::Float32(number) if number.is_finite() => float32(out, *number),
        Value::Float64(number) if number.is_finite() => float64(out, *number),
        other => {
            let mut text = Vec::new();
            text_value(&mut text, other);
            json_string(out, &String::from_utf8_lossy(&text));
        }
    }
}

/// A value for CSV: as in text, empty for what is missing.
pub(crate) fn csv_value(out: &mut Vec<u8>, value: &Value) {
    if !matches!(value, Value::Missing(_)) {
        text_value(out, value);
    }
}

/// A kind of value that came after this code.
#[cold]
fn debug(out: &mut Vec<u8>, value: &Value) {
    let _ = write!(out, "<{value:?}>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use usdtrec_format::Missing;

    fn all(value: &Value) -> [String; 3] {
        [text_value, json_value, csv_value].map(|write| {
            let mut out = Vec::new();
            write(&mut out, value);
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn numbers_are_the_same_everywhere() {
        assert_eq!(all(&Value::Unsigned(u64::MAX)), ["18446744073709551615"; 3]);
        assert_eq!(all(&Value::Signed(-1)), ["-1"; 3]);
        assert_eq!(all(&Value::Float32(0.1)), ["0.1"; 3]);
        assert_eq!(all(&Value::Float64(2.5e-9)), ["2.5e-9"; 3]);
    }

    #[test]
    fn what_is_missing_is_said_or_left_out() {
        let missing = Value::Missing(Missing::Register("xmm0"));
        assert_eq!(all(&missing), ["<xmm0 not captured>", "null", ""]);
        let odd = Value::Missing(Missing::Operand("\x1b[2J: unknown".to_owned()));
        assert_eq!(all(&odd)[0], "<\\x1b[2J: unknown>");
    }

    #[test]
    fn json_has_no_infinities() {
        assert_eq!(
            all(&Value::Float64(f64::INFINITY)),
            ["inf", "\"inf\"", "inf"]
        );
        assert_eq!(all(&Value::Float32(f32::NAN)), ["NaN", "\"NaN\"", "NaN"]);
    }
}

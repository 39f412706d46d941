//! Numbers of any kind in decimal.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use serde_json::{Number, Value as Json};
use usdtrec_analysis::stats::number::{Float, Integer, Scalar};
use usdtrec_format::Value;
use usdtrec_trace::form::Form;

use crate::text::buffer::Text;

/// A number in decimal: a float with as few digits as read back as the same one of its size.
pub(crate) fn decimal(number: Scalar) -> String {
    let mut text = Text::default();
    match number {
        Scalar::Integer(Integer(number)) => {
            return itoa::Buffer::new().format(number).to_owned();
        }
        Scalar::Float(number) if number.is_single() => text.float32(number.value() as f32),
        Scalar::Float(number) => text.float64(number.value()),
    }
    text.into_string()
}

/// A number in JSON; of a float of 4 bytes, that of 8 bytes with the same digits.
pub(crate) fn json(number: Scalar) -> Json {
    json_of_decimal(&decimal(number))
}

/// The number of a text in decimal, in JSON; `null` if it is none.
pub(crate) fn json_of_decimal(text: &str) -> Json {
    match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(number), _) => json_integer(number),
        (_, Ok(number)) => json_float(number),
        _ => Json::Null,
    }
}

/// An integer in JSON; beyond 64 bits, which readers would round, a string of its digits.
pub(crate) fn json_integer(number: i128) -> Json {
    Number::from_i128(number).map_or_else(|| number.to_string().into(), Json::Number)
}

/// A float in JSON; those that JSON has not are the strings `NaN`, `inf` and `-inf`.
pub(crate) fn json_float(number: f64) -> Json {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Json::Number)
}

/// A number as it is shown for people.
pub fn shown(number: Scalar, form: &Form) -> String {
    if *form == Form::Plain {
        return decimal(number);
    }
    let value = match number {
        Scalar::Integer(Integer(number)) => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => Value::Unsigned(number),
            (_, Ok(number)) => Value::Signed(number),
            _ => Value::Float64(number as f64),
        },
        Scalar::Float(number) if number.is_single() => Value::Float32(number.value() as f32),
        Scalar::Float(number) => Value::Float64(number.value()),
    };
    let mut text = Text::default();
    text.formed(form, &value);
    text.into_string()
}

/// A number between two others that is known within 1/256 of itself, as it is shown for people: with the three digits that it has.
pub(crate) fn near(number: Scalar, ends: RangeInclusive<Scalar>, form: &Form) -> String {
    let number = match form {
        Form::Plain => rounded(number).clamp(*ends.start(), *ends.end()),
        _ => number,
    };
    format!("~{}", shown(number, form))
}

/// A number with three digits; of two that are as near, the even one.
fn rounded(number: Scalar) -> Scalar {
    match number {
        Scalar::Integer(Integer(number)) => {
            let digits = number.unsigned_abs().max(1).ilog10() + 1;
            let step = 10_i128.pow(digits.saturating_sub(3));
            let (three, rest) = (number / step, number % step);
            let is_up = match (2 * rest.abs()).cmp(&step) {
                Ordering::Less => false,
                Ordering::Equal => three % 2 != 0,
                Ordering::Greater => true,
            };
            let three = three + if is_up { number.signum() } else { 0 };
            Scalar::integer(three * step)
        }
        Scalar::Float(float) => {
            let three = format!("{:.2e}", float.value());
            let three = three.parse::<f64>().unwrap_or_default();
            Float::double(three).map_or(number, Scalar::Float)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_where_json_has_them() {
        let all = [
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("36893488147419103230", "\"36893488147419103230\""),
            ("-9223372036854775809", "\"-9223372036854775809\""),
            ("500.0", "500.0"),
            ("0.1", "0.1"),
            ("inf", "\"inf\""),
            ("-inf", "\"-inf\""),
            ("NaN", "\"NaN\""),
            ("", "null"),
        ];
        for (text, expected) in all {
            assert_eq!(json_of_decimal(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn approximate_numbers_have_the_digits_that_they_have() {
        let integer = |number: i64| Scalar::integer(number);
        let float = |number: f64| Float::double(number).map(Scalar::Float).unwrap();
        let ends = integer(i64::MIN)..=integer(i64::MAX);
        let of = |number: i64| near(integer(number), ends.clone(), &Form::Plain);
        assert_eq!(of(49_535), "~49500");
        assert_eq!(of(-49_535), "~-49500");
        assert_eq!(of(7), "~7");
        assert_eq!(of(0), "~0");
        for (number, three) in [(1235, "~1240"), (1245, "~1240"), (-1235, "~-1240")] {
            assert_eq!(of(number), three);
        }
        assert_eq!(of(9996), "~10000");
        assert_eq!(of(i64::MAX), "~9220000000000000000");
        assert_eq!(
            near(integer(99_900), integer(0)..=integer(99_850), &Form::Plain),
            "~99850"
        );
        let ends = float(f64::MIN)..=float(f64::MAX);
        let of = |number: f64| near(float(number), ends.clone(), &Form::Plain);
        assert_eq!(of(0.787_109_4), "~0.787");
        assert_eq!(of(1234.5), "~1230.0");
        assert_eq!(of(-1e-300), "~-1e-300");
        let ends = integer(0)..=integer(1 << 40);
        assert_eq!(near(integer(2_345_678), ends, &Form::Time(1)), "~2.35ms");
    }
}

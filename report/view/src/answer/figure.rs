//! A number of an answer.

use serde::{Serialize, Serializer};
use usdtrec_analysis::stats::number::Scalar;

use crate::text::scalar::decimal;

/// A number. In JSON, floats that JSON has not are the strings `NaN`, `inf` and `-inf`, and integers beyond 64 bits, which readers would round, strings of
/// their digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// An integer.
    Integer(i128),
    /// A float; one of 4 bytes is that of 8 bytes with the same digits.
    Float(f64),
}

impl Figure {
    /// The number of a text in decimal; `None` if it is none.
    pub(crate) fn from_decimal(text: &str) -> Option<Self> {
        let integer = text.parse().map(Self::Integer).ok();
        integer.or_else(|| text.parse().map(Self::Float).ok())
    }
}

impl From<Scalar> for Figure {
    fn from(number: Scalar) -> Self {
        let known = Self::from_decimal(&decimal(number));
        known.unwrap_or_else(|| Self::Float(number.approximate()))
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Integer(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => serializer.serialize_u64(number),
                (_, Ok(number)) => serializer.serialize_i64(number),
                _ => serializer.collect_str(&number),
            },
            Self::Float(number) if number.is_finite() => serializer.serialize_f64(number),
            Self::Float(number) => serializer.collect_str(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_where_json_has_them() {
        let json = |text: &str| {
            let figure = Figure::from_decimal(text);
            figure.map(|figure| serde_json::to_string(&figure).unwrap())
        };
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
        ];
        for (text, expected) in all {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(json(""), None);
    }
}

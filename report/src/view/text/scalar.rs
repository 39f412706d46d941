//! Numbers of any kind in decimal.

use serde_json::{Value as Json, json};
use usdtrec_format::Value;

use crate::stats::number::{Integer, Scalar};
use crate::trace::form::Form;
use crate::view::text::buffer::Text;

/// A number in decimal: a float with as few digits as read back as the same one of its size.
pub(crate) fn decimal(number: Scalar) -> String {
    let mut text = Text::default();
    match number {
        Scalar::Integer(Integer(number)) => text.string(itoa::Buffer::new().format(number)),
        Scalar::Float(number) if number.is_single() => text.float32(number.value() as f32),
        Scalar::Float(number) => text.float64(number.value()),
    }
    text.into_string()
}

/// A number as it is shown for people.
pub(crate) fn shown(number: Scalar, form: &Form) -> String {
    shown_decimal(&decimal(number), form)
}

/// A number in decimal as it is shown for people.
pub(crate) fn shown_decimal(decimal: &str, form: &Form) -> String {
    let value = if let Ok(number) = decimal.parse() {
        Value::Unsigned(number)
    } else if let Ok(number) = decimal.parse() {
        Value::Signed(number)
    } else if let Ok(number) = decimal.parse() {
        Value::Float64(number)
    } else {
        return decimal.to_owned();
    };
    if *form == Form::Plain {
        return decimal.to_owned();
    }
    let mut text = Text::default();
    text.formed(form, &value);
    text.into_string()
}

/// A number for JSON.
pub(crate) fn json(number: Scalar) -> Json {
    json_decimal(&decimal(number))
}

/// A number in decimal for JSON; infinities as text.
pub(crate) fn json_decimal(text: &str) -> Json {
    if let Ok(number) = text.parse::<u64>() {
        json!(number)
    } else if let Ok(number) = text.parse::<i64>() {
        json!(number)
    } else {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => json!(number),
            _ => json!(text),
        }
    }
}

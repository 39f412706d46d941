//! Appending text to byte buffers: numbers, values, JSON and CSV, without allocation and without `format!`.

mod number;
mod quoted;
mod value;

pub(crate) use self::number::{float32, float64, hex, padded, signed, unsigned, zero_padded};
pub(crate) use self::quoted::{csv_field, json_string};
pub(crate) use self::value::{csv_value, json_value, text_value};

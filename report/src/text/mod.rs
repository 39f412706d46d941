//! Appending text to buffers: numbers, values, JSON and CSV, without allocation and without `format!`.

mod buffer;
mod form;
mod list;
mod number;
mod quoted;
mod value;

pub(crate) use self::buffer::{Piece, Text};
pub(crate) use self::form::{Form, time};
pub(crate) use self::list::list;
pub(crate) use self::quoted::{Csv, json_string};

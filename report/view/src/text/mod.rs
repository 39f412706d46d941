//! Appending text to buffers: numbers, values, JSON and CSV, without allocation and without `format!`.

pub mod buffer;
pub(crate) mod form;
pub(crate) mod number;
pub mod quoted;
pub mod scalar;
pub(crate) mod value;
pub(crate) mod width;

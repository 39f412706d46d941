//! Appending text to buffers: numbers, values, JSON and CSV, without allocation and without `format!`.

pub(crate) mod buffer;
pub(crate) mod form;
pub(crate) mod number;
pub(crate) mod quoted;
pub(crate) mod scalar;
pub(crate) mod value;

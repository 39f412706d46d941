//! What samples are grouped by.

pub(crate) mod dictionary;
pub(crate) mod key;
pub(crate) mod value;

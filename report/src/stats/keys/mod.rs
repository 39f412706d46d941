//! What samples are grouped by.

pub(crate) mod dictionary;
pub(crate) mod key;

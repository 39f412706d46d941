//! A comparison of two traces as text, JSON and CSV.

pub(crate) mod data;
pub(crate) mod head;
pub(crate) mod table;
pub(crate) mod text;

//! An open trace: what was recorded, who ran what when, and what addresses are called.

pub(crate) mod address_cache;
pub(crate) mod calls;
pub(crate) mod fields;
pub(crate) mod form;
pub mod process;
pub(crate) mod rows;
pub(crate) mod session;
pub mod symbols;
pub(crate) mod time_span;
pub(crate) mod unwind;
pub(crate) mod wall_times;

//! An open trace: what was recorded, who ran what when, and what addresses are called; and its selected events.

#![forbid(unsafe_code)]

pub mod added;
pub(crate) mod address_cache;
pub mod calls;
pub mod error;
pub mod events;
pub mod field_error;
pub mod field_value;
pub mod fields;
pub mod form;
pub mod list;
pub mod pool;
pub mod process;
pub mod question_error;
pub mod rows;
pub mod session;
pub mod symbols;
pub mod time_of_day;
pub mod time_span;
pub mod unwind;
pub mod wall_times;

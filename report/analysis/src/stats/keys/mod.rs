//! What samples are grouped by.

mod argument_name;
pub(crate) mod dictionary;
pub mod key;
pub(crate) mod script;
pub mod stack;
pub mod stacks;
pub mod value;

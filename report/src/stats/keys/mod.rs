//! What samples are grouped by.

mod argument_name;
pub(crate) mod dictionary;
pub(crate) mod key;
pub(crate) mod script;
pub(crate) mod stack;
pub(crate) mod stacks;
pub(crate) mod value;

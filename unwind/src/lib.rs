#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod caller;
mod code;
mod copied_code;
mod entry_work;
mod expression;
mod followed;
mod known_stacks;
mod machine;
mod register_places;
mod registers;
mod stack_copy;
mod table;
mod unwind_tables;
mod unwinder;

#[cfg(test)]
mod tests;

pub use code::{Code, MappedCode, ProcessCode, Segments};
pub use copied_code::{CPYTHON_ARENA_BYTES, CopiedCode, CopiedFunction, CopiedOriginal};
pub use followed::Followed;
pub use known_stacks::KnownStacks;
pub use machine::column;
pub use register_places::RegisterPlaces;
pub use registers::Registers;
pub use stack_copy::{StackCopy, StackEnd};
pub use unwind_tables::UnwindTables;
pub use unwinder::{StackFrame, Unwinder};

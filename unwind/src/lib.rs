#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod budget;
mod caller;
mod code;
mod copied_code;
mod entry_work;
mod expression;
mod followed;
mod frame_pointer;
mod known_stacks;
mod machine;
mod register_places;
mod registers;
mod segments;
mod stack_copy;
mod stack_end;
mod table;
mod unwind_tables;
mod unwinder;

#[cfg(test)]
mod tests;

pub use code::{Code, MappedCode, ProcessCode};
pub use copied_code::{CPYTHON_ARENA_BYTES, CopiedCode, CopiedFunction, CopiedOriginal};
pub use followed::Followed;
pub use known_stacks::KnownStacks;
pub use machine::column;
pub use register_places::RegisterPlaces;
pub use registers::Registers;
pub use segments::Segments;
pub use stack_copy::StackCopy;
pub use stack_end::StackEnd;
pub use unwind_tables::UnwindTables;
pub use unwinder::{StackFrame, Unwinder};

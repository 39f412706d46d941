//! Files that were made to do harm: no panic, no abort, bounded time and memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::panic_in_result_fn,
    missing_docs,
    unreachable_pub,
    dead_code
)]

mod changed_files;
mod changes;
mod child;
mod code_names;
mod crafted;
mod damage;
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;
mod groups;
mod limits;
mod names;
mod replay;
mod symbols;
mod unwound;

//! Attaching probes: which sites are selected ([`select`]), what is captured at a hit ([`plan`]), and the two engines that attach and capture
//! ([`engine`]).
//!
//! No probe outlives its recorder for long. Perf events and BPF links end with their descriptors, even if the recorder is killed; at a normal end a
//! helper process closes them ([`release`](engine::release)). A guard process removes tracefs events.

pub mod aggregation;
pub mod budget;
pub mod callbacks;
pub mod chosen;
pub mod debug_info;
pub mod engine;
pub mod error;
mod file_change;
pub mod filter;
pub mod places;
pub mod plan;
pub mod select;
pub mod target;

pub use file_change::FileChange;

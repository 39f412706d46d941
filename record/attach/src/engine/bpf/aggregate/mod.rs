//! Programs that aggregate hits instead of copying them out.
//!
//! A program can be preempted, and the program of another hit can run on the CPU meanwhile: all counters are changed atomically, and a key
//! is made in memory that no other program has ([`group_hit`]).

mod durations;
pub(super) mod group_decoder;
mod group_hit;
pub(super) mod group_map;
mod group_numbers;
pub(super) mod grouping;
pub(super) mod hit_counts;
mod number_hit;
pub(super) mod number_layout;
pub(super) mod stack_layout;
mod stack_map;
pub(super) mod thread_keys;

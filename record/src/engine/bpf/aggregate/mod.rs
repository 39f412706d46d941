//! Programs that aggregate hits instead of copying them out.
//!
//! A program can be preempted, and the program of another hit can run on the CPU meanwhile: all counters are changed atomically.

mod count_hit;
mod hit_counts;

pub(super) use hit_counts::HitCounts;

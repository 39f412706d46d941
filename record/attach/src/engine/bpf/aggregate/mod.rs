//! Programs that aggregate hits instead of copying them out.
//!
//! A program can be preempted, and the program of another hit can run on the CPU meanwhile: all counters are changed atomically, and a key
//! is made in memory that no other program has ([`group_hit`]).

mod durations;
mod group_decoder;
mod group_hit;
mod group_map;
mod group_numbers;
mod grouping;
mod hit_counts;
mod number_hit;
mod number_layout;
pub(super) mod stack_layout;
mod stack_map;

pub(super) use self::grouping::EventNeeds;
#[cfg(test)]
pub(super) use self::grouping::KeyLayout;
pub(super) use self::number_layout::{Measured, measured};
pub(super) use self::stack_layout::StackLayout;
pub(super) use group_decoder::GroupDecoder;
#[cfg(test)]
pub(super) use group_map::GroupElement;
pub(super) use group_map::{GroupDescriptors, GroupMaps, MAX_SPAN_BYTES, SharedGroups};
pub(super) use grouping::Grouping;
pub(super) use hit_counts::{CountedIds, HitCounts, HitWord};
#[cfg(test)]
pub(super) use number_layout::NumberLayout;

//! How long keys are.

use super::super::plan::Group;
use super::grouping::RAW;

/// Size of the longest key of these events, bytes, a multiple of 8; `None` if there are none.
pub(in crate::engine::bpf) fn longest_key(groups: &[Group]) -> Option<usize> {
    let bytes = |group: &Group| (RAW as usize + group.whole_bytes()).next_multiple_of(8);
    groups.iter().map(bytes).max()
}

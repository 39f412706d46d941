//! How long keys are.

use super::super::plan::Group;
use super::grouping::RAW;

/// Size of the longest key of these events, bytes, a multiple of 8; `None` if there are none.
pub(in crate::engine::bpf) fn longest_key(groups: &[Group]) -> Option<usize> {
    let bytes = |group: &Group| {
        let strings = group.layout.strings().count();
        let raw = usize::from(group.layout.size) + strings * group.rooms.whole.each;
        (RAW as usize + raw).next_multiple_of(8)
    };
    groups.iter().map(bytes).max()
}

//! How long keys are.

use super::super::plan::Group;
use super::grouping::RAW;
use super::needs::EventNeeds;

impl<'a> EventNeeds<'a> {
    /// What these events need.
    pub(in crate::engine::bpf) fn of(events: &'a [Group]) -> Self {
        let key = |event: &Group| (RAW as usize + event.whole_bytes()).next_multiple_of(8);
        let measured = events.iter().map(|event| event.measured.as_slice());
        Self {
            longest_key: events.iter().map(key).max(),
            measured: measured.collect(),
        }
    }
}

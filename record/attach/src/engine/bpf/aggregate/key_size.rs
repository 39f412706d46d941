//! How long keys are.

use super::super::plan::Group;
use super::needs::EventNeeds;

impl<'a> EventNeeds<'a> {
    /// What these events need.
    pub(in crate::engine::bpf) fn from_events(events: &'a [Group]) -> Self {
        let raw = |event: &Group| event.whole_bytes().next_multiple_of(8);
        let measured = events.iter().map(|event| event.measured.as_slice());
        Self {
            longest_raw: events.iter().map(raw).max(),
            measured: measured.collect(),
        }
    }
}

//! The part of a sample that is read before it is parsed: its event and its time.

use crate::session::events::Events;
use crate::session::ids::{SampleIds, SampleTarget};

/// A sample's event, from the body of its record.
#[inline(always)]
pub(crate) fn target_of(body: &[u8], events: &Events, ids: &SampleIds) -> Option<SampleTarget> {
    match ids.in_front {
        true => ids.get(u64::from_le_bytes(*body.first_chunk::<8>()?)),
        false => target_within(body, events, ids),
    }
}

/// The same without identifiers in front: then all events of a file have their parts at the same places.
#[inline(never)]
fn target_within(body: &[u8], events: &Events, ids: &SampleIds) -> Option<SampleTarget> {
    let sample = events.events.first()?.layout.parse(body)?;
    ids.get(sample.id).or(ids.only)
}

/// When a sample's event was hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedTarget {
    pub(crate) target: SampleTarget,
    /// Time, ns of the trace's clock; 0 without times.
    pub(crate) time: u64,
}

/// A sample's event and time, from the body of its record.
#[inline(always)]
pub(crate) fn time_of(body: &[u8], events: &Events, ids: &SampleIds) -> Option<TimedTarget> {
    let target = target_of(body, events, ids)?;
    let event = events.events.get(target.event as usize)?;
    let time = match event.layout.time_offset() {
        None => 0,
        Some(offset) => u64::from_le_bytes(*body.get(offset..)?.first_chunk::<8>()?),
    };
    Some(TimedTarget { target, time })
}

//! Times that the time of a sample may be counted from.

use crate::events::order::pending::{LoadedBlock, SampleEntry, SampleKey, WindowPart, record_at};
use crate::session::TraceSession;

/// Times of samples before a sample in order, ns; 0 without such a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreviousTimes {
    /// Time of the first sample.
    pub first: u64,
    /// Time of the previous sample.
    pub previous: u64,
}

impl PreviousTimes {
    /// Continues after a sample. One without a time is skipped.
    #[inline]
    pub const fn pass(&mut self, time: u64) {
        if time != 0 {
            self.previous = time;
            if self.first == 0 {
                self.first = time;
            }
        }
    }

    /// Continues after a window that is not yet merged; returns the times before it.
    pub(crate) fn pass_window(
        &mut self,
        session: &TraceSession,
        blocks: &[LoadedBlock],
        window: &[WindowPart],
    ) -> Self {
        let before = *self;
        let times = |part: &WindowPart, from_end: bool| {
            let block = blocks.get(part.slot)?;
            let mut keys = block.keys.get(part.keys.clone())?.iter();
            let time = |key: &SampleKey| time_of(session, block, key.offset);
            if from_end {
                keys.rev().find_map(time)
            } else {
                keys.find_map(time)
            }
        };
        if self.first == 0 {
            let first = window.iter().filter_map(|part| times(part, false)).min();
            self.pass(first.unwrap_or(0));
        }
        let last = window.iter().filter_map(|part| times(part, true)).max();
        self.pass(last.unwrap_or(0));
        before
    }

    /// Continues after samples in order; returns the times before them.
    pub(crate) fn pass_entries(
        &mut self,
        session: &TraceSession,
        blocks: &[LoadedBlock],
        entries: &[SampleEntry],
    ) -> Self {
        let before = *self;
        let time =
            |entry: &SampleEntry| time_of(session, blocks.get(entry.slot as usize)?, entry.offset);
        if self.first == 0 {
            self.pass(entries.iter().find_map(time).unwrap_or(0));
        }
        self.pass(entries.iter().rev().find_map(time).unwrap_or(0));
        before
    }
}

/// The time of a sample; `None` without a time, or if the sample is not shown because it is cut short.
fn time_of(session: &TraceSession, block: &LoadedBlock, offset: u32) -> Option<u64> {
    let hit = session.sample(record_at(&block.bytes, offset)?)?;
    Some(hit.sample.time).filter(|time| *time != 0)
}

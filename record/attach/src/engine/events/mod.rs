//! Perf events and their rings.

pub(super) mod event;
pub(super) mod process_events;
pub(super) mod rings;

//! Perf events and their rings.

pub(super) mod event;
pub(super) mod pmu;
pub(super) mod process_events;
pub(super) mod process_records;
pub(super) mod refusal;
pub(super) mod ring;
pub(super) mod rings;
pub(super) mod span_site;

//! How much of the time probes were recorded in.

use serde::Serialize;
use usdtrec_trace::session::recorded_part::RecordedPart;

/// How much of the selected time probes were recorded in that were detached in the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedTime {
    /// Number of pauses.
    pub pauses: u64,
    /// The selected time, ns. Divided by `recorded_ns`, it is the factor: what one that was recorded stands for.
    pub time_ns: u64,
    /// What of it is in no pause, ns.
    pub recorded_ns: u64,
}

impl RecordedTime {
    pub(crate) const fn new(part: &RecordedPart) -> Self {
        Self {
            pauses: part.pauses,
            time_ns: part.time,
            recorded_ns: part.recorded,
        }
    }
}

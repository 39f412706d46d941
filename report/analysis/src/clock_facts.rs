//! What a trace says of its time of day.

use usdtrec_format::trace::WallQuality;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::wall_times::{ClockStep, WallTimes};

/// How exact times of day are.
#[derive(Clone, Debug)]
pub struct ClockFacts {
    /// Number of readings of both clocks.
    pub readings: usize,
    /// Maximum error of a time of day against the host's own wall clock, ns.
    pub error_ns: u32,
    /// When the wall clock was set, at most [`Self::MAX_STEPS`] times.
    pub steps: Vec<ClockStep>,
    /// What the host knew about the difference of its clock from UTC.
    pub quality: Option<WallQuality>,
}

impl ClockFacts {
    /// Maximum number of steps that are shown.
    pub const MAX_STEPS: usize = 256;

    /// `None` if the trace has no readings with errors.
    pub(crate) fn from_session(session: &TraceSession) -> Option<Self> {
        let times = session.wall_times()?;
        Some(Self {
            readings: times.count()?,
            error_ns: times.error_ns(),
            steps: times.steps().take(Self::MAX_STEPS).collect(),
            quality: times.quality(),
        })
    }
}

/// The time of day of the first sample, ns since 1970.
pub(crate) fn start(session: &TraceSession) -> Option<u64> {
    let first = session.time()?.first;
    let wall = session
        .wall_times()
        .map(|times: &WallTimes| times.wall(first));
    u64::try_from(wall?).ok()
}

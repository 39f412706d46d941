//! Where, when and how a trace was recorded.

use serde::Serialize;
use usdtrec_analysis::clock_facts::ClockFacts;
use usdtrec_analysis::origin::{Origin, TriggerFacts};
use usdtrec_format::trace::TriggerKind;
use usdtrec_trace::wall_times::ClockStep;

use crate::head::{date_for_machines, rfc3339};

/// A recording as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingAnswer {
    /// Path of the trace.
    pub file: String,
    /// The files that it is made of, in the order of their times; none if it is a single one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The times between files in which nothing was recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapRow>,
    /// Name of the host; this and the next ones are empty if not known.
    pub host: String,
    /// Architecture, as its kernel calls it.
    pub machine: String,
    /// Version of the kernel.
    pub kernel: String,
    /// `bpf` or `perf`, or `import`; `None` in files of other recorders.
    pub engine: Option<String>,
    /// What recorded.
    pub producer: String,
    /// Words of the command line that recorded.
    pub command: Vec<String>,
    /// Wall-clock time of the first event (RFC 3339, UTC).
    pub start: Option<String>,
    /// How exact times of day are; `None` if the trace has no readings of the clocks.
    pub clock: Option<ClockAnswer>,
    /// What had the recorder write the file; `None` if nothing but its end had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerAnswer>,
}

/// What had a recorder write a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TriggerAnswer {
    /// What fired.
    pub kind: TriggerKind,
    /// The trigger as it was asked for; `None` of a signal and a request.
    pub condition: Option<String>,
    /// When, by the trace's clock, ns.
    pub time_ns: u64,
    /// When, by the wall clock (RFC 3339, UTC); `None` if not known.
    pub time: Option<String>,
    /// The event that was hit; `None` of a signal and a request.
    pub event: Option<String>,
    /// The process that hit it, or that made the request; `None` of a signal.
    pub pid: Option<i32>,
    /// The thread that hit it; `None` of a signal and a request.
    pub tid: Option<i32>,
    /// Name of the span; `None` without one.
    pub span: Option<String>,
    /// Duration of the span, ns.
    pub duration_ns: Option<u64>,
    /// Number of further triggers since the file before, which wrote no file of their own.
    pub more: u64,
}

/// A time between two files in which nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GapRow {
    /// End of the recording before it, by the trace's clock, ns.
    pub from_ns: u64,
    /// Begin of the recording after it, by the trace's clock, ns.
    pub to_ns: u64,
}

/// How exact times of day are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClockAnswer {
    /// How often both clocks were read.
    pub readings: usize,
    /// Maximum error of a time of day against the host's own wall clock, ns.
    pub error_ns: u32,
    /// When the wall clock was set while recording, at most 256 times.
    pub steps: Vec<ClockStepRow>,
    /// Whether something kept the wall clock synchronized, at all readings; `None` if the host did not say.
    pub synchronized: Option<bool>,
    /// Estimated difference of the wall clock from UTC (`esterror` of `adjtimex(2)`), ns; `None` if it was not synchronized.
    pub utc_error_ns: Option<u64>,
    /// Maximum difference (`maxerror`), ns; `None` as `utc_error_ns`.
    pub utc_max_error_ns: Option<u64>,
}

/// A change of the wall clock while recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClockStepRow {
    /// The last reading before it, by the trace's clock, ns.
    pub from_ns: u64,
    /// The first reading after it, by the trace's clock, ns.
    pub to_ns: u64,
    /// By how much the clock was set forward, ns; negative if backward, `None` beyond 64 bits.
    pub by_ns: Option<i64>,
}

impl RecordingAnswer {
    pub(crate) fn new(origin: &Origin) -> Self {
        Self {
            file: origin.file.clone(),
            files: origin
                .files
                .iter()
                .map(|file| file.path.display().to_string())
                .collect(),
            gaps: origin
                .files
                .gaps()
                .map(|gap| GapRow {
                    from_ns: gap.first,
                    to_ns: gap.last,
                })
                .collect(),
            host: origin.host.clone(),
            machine: origin.machine.clone(),
            kernel: origin.kernel.clone(),
            engine: origin.engine.clone(),
            producer: origin.producer.clone(),
            command: origin.command.clone(),
            start: date_for_machines(origin),
            clock: origin.clock.as_ref().map(ClockAnswer::new),
            trigger: origin.trigger.as_ref().map(TriggerAnswer::new),
        }
    }
}

impl TriggerAnswer {
    fn new(TriggerFacts { fired, wall_ns }: &TriggerFacts) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let id = |id: i32| Some(id).filter(|id| *id != 0);
        Self {
            kind: fired.kind,
            condition: text(&fired.condition),
            time_ns: fired.time_ns,
            time: wall_ns.and_then(rfc3339),
            event: text(&fired.event),
            pid: id(fired.pid),
            tid: id(fired.tid),
            span: text(&fired.span),
            duration_ns: fired.duration_ns,
            more: fired.more,
        }
    }
}

impl ClockAnswer {
    fn new(clock: &ClockFacts) -> Self {
        let known = clock.quality;
        let synchronized = known.filter(|quality| quality.is_synchronized);
        let nanoseconds = |microseconds: u32| u64::from(microseconds) * 1000;
        Self {
            readings: clock.readings,
            error_ns: clock.error_ns,
            steps: clock.steps.iter().map(ClockStepRow::new).collect(),
            synchronized: known.map(|quality| quality.is_synchronized),
            utc_error_ns: synchronized.map(|quality| nanoseconds(quality.estimated_us)),
            utc_max_error_ns: synchronized.map(|quality| nanoseconds(quality.maximum_us)),
        }
    }
}

impl ClockStepRow {
    fn new(step: &ClockStep) -> Self {
        Self {
            from_ns: step.before.clock_ns,
            to_ns: step.after.clock_ns,
            by_ns: i64::try_from(step.by_ns()).ok(),
        }
    }
}

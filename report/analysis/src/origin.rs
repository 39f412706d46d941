//! Where, when and how a trace was recorded.

use usdtrec_format::trace::FiredTrigger;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::joined_files::JoinedFiles;
use usdtrec_trace::wall_times::WallTimes;

use crate::clock_facts::{self, ClockFacts};

/// Facts about a trace as a whole.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Path of the trace.
    pub file: String,
    /// The files that it is made of; none if it is a single one.
    pub files: JoinedFiles,
    /// Name of the recording host.
    pub host: String,
    /// The recording host's architecture, as its kernel calls it.
    pub machine: String,
    /// Release of its kernel.
    pub kernel: String,
    /// `CLOCK_REALTIME` of the first sample, ns since 1970.
    pub wall_ns: Option<u64>,
    /// What times of day are found by; `None` if the trace has none.
    pub times_of_day: Option<WallTimes>,
    /// How exact times of day are.
    pub clock: Option<ClockFacts>,
    /// What wrote the trace.
    pub producer: String,
    /// The engine that recorded; `None` if the trace does not say.
    pub engine: Option<String>,
    /// Command line of the recorder.
    pub command: Vec<String>,
    /// Events of the whole trace that were lost, at the least.
    pub lost: u64,
    /// What had the recorder write the file; `None` if nothing but its end had.
    pub trigger: Option<TriggerFacts>,
}

/// What had a recorder write a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFacts {
    /// What fired.
    pub fired: FiredTrigger,
    /// `CLOCK_REALTIME` of it, ns since 1970; `None` if not known.
    pub wall_ns: Option<i128>,
}

impl Origin {
    /// The facts of an open trace.
    pub fn new(session: &TraceSession) -> Self {
        let info = session.info();
        Self {
            file: session.path().display().to_string(),
            files: session.files().clone(),
            host: info.hostname.clone(),
            machine: info.machine.clone(),
            kernel: info.os_release.clone(),
            wall_ns: clock_facts::start(session),
            times_of_day: session.wall_times().cloned(),
            clock: ClockFacts::from_session(session),
            producer: info.version.clone(),
            engine: info
                .definitions
                .as_ref()
                .map(|definitions| definitions.engine.clone()),
            command: info.command.clone(),
            lost: session.losses().total(),
            trigger: TriggerFacts::of_session(session),
        }
    }
}

impl TriggerFacts {
    /// The trigger of an open trace.
    pub fn of_session(session: &TraceSession) -> Option<Self> {
        let fired = session.fired()?.clone();
        let wall = session.wall_times();
        Some(Self {
            wall_ns: wall.map(|times| times.wall(fired.time_ns)),
            fired,
        })
    }
}

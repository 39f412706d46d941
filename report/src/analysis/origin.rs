//! Where, when and how a trace was recorded.

use crate::analysis::clock_facts::{self, ClockFacts};
use crate::trace::session::TraceSession;

/// Facts about a trace as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) file: String,
    pub(crate) host: String,
    pub(crate) machine: String,
    pub(crate) kernel: String,
    /// `CLOCK_REALTIME` of the first sample, ns since 1970.
    pub(crate) wall_ns: Option<u64>,
    /// How exact times of day are.
    pub(crate) clock: Option<ClockFacts>,
    /// What wrote the trace.
    pub(crate) producer: String,
    pub(crate) engine: Option<String>,
    pub(crate) command: Vec<String>,
    /// Events of the whole trace that were lost, at the least.
    pub(crate) lost: u64,
}

impl Origin {
    pub(crate) fn new(session: &TraceSession) -> Self {
        let info = session.info();
        Self {
            file: session.path().display().to_string(),
            host: info.hostname.clone(),
            machine: info.machine.clone(),
            kernel: info.os_release.clone(),
            wall_ns: clock_facts::start(session),
            clock: ClockFacts::from_session(session),
            producer: info.version.clone(),
            engine: info
                .definitions
                .as_ref()
                .map(|definitions| definitions.engine.clone()),
            command: info.command.clone(),
            lost: session.lost(),
        }
    }
}

//! Where, when and how a trace was recorded.

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
        let first = session.time().map(|time| time.first);
        let wall_ns = info.clock.zip(first).and_then(|(clock, first)| {
            let since = i128::from(first) - i128::from(clock.clock_ns);
            u64::try_from(i128::from(clock.wall_ns) + since).ok()
        });
        Self {
            file: session.path().display().to_string(),
            host: info.hostname.clone(),
            machine: info.machine.clone(),
            kernel: info.os_release.clone(),
            wall_ns,
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

//! The head of a report: what was recorded where, when and how.

use usdtrec_format::escape::escape;

use crate::trace::session::Session;
use crate::view::columns::folded_from;
use crate::view::theme::Look;

/// A line of the head, with `# ` in front, as lines of at most 80 columns.
pub(crate) fn folded_line(line: &str) -> String {
    let mut lines = String::new();
    folded_from("# ", line, "#   ", &mut lines);
    lines.trim_end().to_owned()
}

/// What a report says of the trace as a whole.
#[derive(Debug)]
pub(crate) struct Head {
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
    /// How the question is understood.
    remarks: Vec<String>,
}

impl Head {
    pub(crate) fn new(session: &Session) -> Self {
        let info = session.info();
        let first = session.time().map(|(first, _)| first);
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
            remarks: Vec::new(),
        }
    }

    /// The same with lines that say how the question is understood.
    pub(crate) fn with(self, remarks: Vec<String>) -> Self {
        Self { remarks, ..self }
    }

    /// Appends the lines that the answer to a question begins with.
    pub(crate) fn put(&self, look: Look, out: &mut String) {
        for line in self.lines() {
            look.put_remark(&folded_line(&line), out);
        }
        if self.lost > 0 {
            let line = format!("# {} events were lost, which are not in here", self.lost);
            look.put_alarm(&line, out);
        }
        for remark in &self.remarks {
            look.put_remark(&folded_line(&escape(remark)), out);
        }
    }

    /// `2026-11-20 22:14:03 UTC`.
    pub(crate) fn date(&self) -> Option<String> {
        let time = jiff::Timestamp::from_nanosecond(i128::from(self.wall_ns?)).ok()?;
        Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
    }

    /// `2026-11-20T22:14:03.123456789Z`.
    pub(crate) fn date_for_machines(&self) -> Option<String> {
        let time = jiff::Timestamp::from_nanosecond(i128::from(self.wall_ns?)).ok()?;
        Some(time.to_string())
    }

    /// The second and third line: host and so on, and the command.
    pub(crate) fn lines(&self) -> Vec<String> {
        let kernel = match &*self.kernel {
            "" => String::new(),
            release => format!("Linux {release}"),
        };
        let host = match &*self.host {
            "" => String::new(),
            name => format!("host {name}"),
        };
        let engine = match &self.engine {
            Some(engine) => format!("engine {engine}"),
            None if self.producer.is_empty() => String::new(),
            None => format!("recorded by perf {}", self.producer),
        };
        let date = self.date().unwrap_or_default();
        let parts = [host, self.machine.clone(), kernel, date, engine];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut lines = Vec::new();
        if !parts.is_empty() {
            lines.push(escape(&parts.join(", ")).into_owned());
        }
        if !self.command.is_empty() {
            lines.push(escape(&self.command.join(" ")).into_owned());
        }
        lines
    }
}

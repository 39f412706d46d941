//! What is asked of triggers.

use std::time::Duration;

use usdtrec_format::Pattern;
use usdtrec_format::expr::Expr;

/// What hits have a recording write a file, or end.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// As the user wrote it.
    pub text: String,
    /// What fires.
    pub subject: TriggerSubject,
    /// Whether the recording ends then.
    pub ends: bool,
}

/// What fires.
#[derive(Clone, Debug)]
pub enum TriggerSubject {
    /// A hit of a probe.
    Hit {
        /// The recorded probes.
        pattern: Box<Pattern>,
        /// For which hits; `None` for all.
        filter: Option<Expr>,
    },
    /// The end of a span.
    Span {
        /// `START..DONE`, or a name that is found by the names of probes, with globs.
        span: String,
        /// Duration of the shortest that fires, ns.
        least: u64,
    },
}

/// When files are written.
#[derive(Clone, Debug, Default)]
pub struct TriggerOptions {
    /// The triggers.
    pub triggers: Vec<Trigger>,
    /// How long recording goes on before the file is written, or before the end.
    pub after: Duration,
    /// How long a trigger writes no file after one has. Signals and requests do.
    pub cooldown: Duration,
}

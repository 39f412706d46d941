//! What is exported.

use usdtrec_analysis::question::StackKind;
use usdtrec_format::LeastParts;

use crate::export_format::ExportFormat;
use crate::redaction::Redaction;

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The format.
    pub format: ExportFormat,
    /// Spans to export alone: `START..DONE`, or names of spans that are found by the names of probes, with globs. Empty: all events, and the
    /// spans that are found by the names of probes.
    pub spans: Vec<String>,
    /// Keys by which begins and ends of spans are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Of the spans that are named, those of at least this duration, ns.
    pub min: u64,
    /// And those with at least this time of each part; not in stacks and pages.
    pub least_parts: LeastParts,
    /// The argument whose sum stacks weigh, in [`ExportFormat::Stacks`]; `None`: their hits, or the time of spans.
    pub value: Option<String>,
    /// Which stacks, in the same formats.
    pub stacks: StackKind,
    /// The argument of begins or ends that has the id of the trace in the sense of OpenTelemetry, as 32 hexadecimal digits, a UUID or a `traceparent`.
    pub trace_id: Option<String>,
    /// Arguments that are left out or hashed; not in [`ExportFormat::Stacks`] and [`ExportFormat::Perf`].
    pub redaction: Redaction,
    /// Whether the output is compressed with gzip.
    pub gzip: bool,
}

impl ExportOptions {
    /// All events and spans in a format.
    #[must_use]
    pub const fn new(format: ExportFormat) -> Self {
        Self {
            format,
            spans: Vec::new(),
            key: Vec::new(),
            min: 0,
            least_parts: LeastParts::NONE,
            value: None,
            stacks: StackKind::Auto,
            trace_id: None,
            redaction: Redaction::NONE,
            gzip: false,
        }
    }
}

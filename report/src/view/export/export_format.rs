//! Formats of other programs.

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Trace Event Format: JSON of `chrome://tracing`.
    Chrome,
    /// Folded stacks with their hits, or the time of spans.
    Folded,
    /// Perfetto's trace format (protobuf).
    Perfetto,
    /// pprof's profiles (protobuf, gzip).
    Pprof,
    /// speedscope's file format (JSON).
    Speedscope,
}

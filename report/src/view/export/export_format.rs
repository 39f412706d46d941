//! Formats of other programs.

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Trace Event Format: JSON of `chrome://tracing`.
    Chrome,
    /// Folded stacks with their hits, or the time of spans.
    Folded,
    /// OpenTelemetry's spans (OTLP) as lines of JSON.
    OtlpJson,
    /// OpenTelemetry's spans (OTLP) as a message `TracesData` (protobuf).
    OtlpProto,
    /// Perfetto's trace format (protobuf).
    Perfetto,
    /// pprof's profiles (protobuf, gzip).
    Pprof,
    /// speedscope's file format (JSON).
    Speedscope,
}

//! Formats of other programs.

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// A page for browsers with the answers of a report, which needs no other file.
    Html,
    /// A perf.data file without compression.
    Perf,
    /// Events and spans, one by one.
    Rows(RowFormat),
    /// Stacks with their hits, or the time of spans.
    Stacks(StackFormat),
}

/// A format of events and spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowFormat {
    /// OpenTelemetry's spans (OTLP) as lines of JSON.
    OtlpJson,
    /// OpenTelemetry's spans (OTLP) as a message `TracesData` (protobuf).
    OtlpProto,
    /// Perfetto's trace format (protobuf).
    Perfetto,
}

/// A format of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackFormat {
    /// Folded stacks.
    Folded,
    /// pprof's profiles (protobuf, gzip).
    Pprof,
}

impl ExportFormat {
    /// Whether it shows spans, whatever is asked for.
    #[must_use]
    pub const fn has_spans(self) -> bool {
        matches!(self, Self::Html | Self::Rows(_))
    }
}

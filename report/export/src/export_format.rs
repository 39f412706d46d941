//! Formats of other programs.

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Common Trace Format 1.8: a folder.
    Ctf,
    /// Firefox Profiler's processed profile (JSON).
    Firefox,
    /// Folded stacks with their hits, or the time of spans.
    Folded,
    /// A page for browsers with the answers of a report, which needs no other file.
    Html,
    /// OpenTelemetry's spans (OTLP) as lines of JSON.
    OtlpJson,
    /// OpenTelemetry's spans (OTLP) as a message `TracesData` (protobuf).
    OtlpProto,
    /// A perf.data file without compression.
    Perf,
    /// Perfetto's trace format (protobuf).
    Perfetto,
    /// pprof's profiles (protobuf, gzip).
    Pprof,
}

impl ExportFormat {
    /// Whether it is a folder of several files.
    #[must_use]
    pub const fn is_folder(self) -> bool {
        matches!(self, Self::Ctf)
    }

    /// Whether it shows spans, whatever is asked for.
    #[must_use]
    pub const fn has_spans(self) -> bool {
        match self {
            Self::Firefox | Self::Html | Self::OtlpJson | Self::OtlpProto | Self::Perfetto => true,
            Self::Ctf | Self::Folded | Self::Perf | Self::Pprof => false,
        }
    }
}

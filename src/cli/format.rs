//! The output format of events and reports.

use clap::ValueEnum;

/// Output format of events and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text; events in the format of `perf script`
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header line; strings that spreadsheets would evaluate as formulas are prefixed with '
    Csv,
    /// Comma-separated values with a header line; all strings unchanged
    CsvRaw,
}

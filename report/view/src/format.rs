//! Formats of output.

use crate::text::quoted::Csv;

/// How output looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people, and for what reads perf's text.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
    /// Comma-separated values with a header line. A string that a spreadsheet would take for a formula has an apostrophe before it.
    Csv,
    /// Comma-separated values with all strings as they are.
    CsvRaw,
}

impl Format {
    /// How strings are written in CSV.
    pub(crate) const fn csv(self) -> Csv {
        match self {
            Self::CsvRaw => Csv::Raw,
            _ => Csv::Guarded,
        }
    }
}

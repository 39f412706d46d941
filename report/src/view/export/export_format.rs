//! Formats of other programs.

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Trace Event Format: JSON of `chrome://tracing`.
    Chrome,
}

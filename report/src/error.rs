//! Why a report could not be made.

use usdtrec_format::PatternError;
use usdtrec_format::trace::ReadError;

/// Why a trace could not be shown. What is wrong inside a readable file is
/// [`Damage`](usdtrec_format::trace::Damage) and costs only what it hits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file cannot be read at all.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A text is not an event pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// What was requested cannot be understood, or the trace does not have it.
    #[error("{0}")]
    Ask(String),
    /// The output cannot be written.
    #[error("cannot write")]
    Write(#[from] std::io::Error),
}

//! Why a report could not be made.

use std::path::PathBuf;

use usdtrec_format::PatternError;
use usdtrec_format::escape::shown;
use usdtrec_format::trace::{JoinError, ReadError};

use crate::question_error::QuestionError;

/// Why a trace could not be shown. What is wrong inside a readable file is
/// [`Damage`](usdtrec_format::trace::Damage) and costs only what it hits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file cannot be read at all.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// One of several files cannot be read at all.
    #[error("{}: {error}", shown(.path))]
    ReadOne {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// Files are not parts of one trace.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A text is not an event pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The question is invalid, or asks for something that the trace does not have.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// One of two recordings does not have what was requested.
    #[error("{}: {error}", shown(.path))]
    QuestionOfOne {
        /// The recording.
        path: PathBuf,
        /// The missing data.
        error: QuestionError,
    },
    /// The output cannot be written.
    #[error("cannot write")]
    Write(#[from] std::io::Error),
}

//! How things are said on a terminal: errors to stderr, a closed pipe as a normal end.

use std::io;
use std::process::ExitCode;

/// Prints an error with its causes on one line and gives the exit status: 0 for a closed pipe, else 1.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    eprintln!("usdtrec: {error:#}");
    ExitCode::FAILURE
}

/// Whether the reader of our output went away, which is a normal end.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

//! How things are said: results to stdout, everything else to stderr; a closed pipe as a normal end.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Says something on stderr. A stderr that is gone (a closed terminal) is no reason to stop working.
pub(crate) fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Prints an error with its causes and gives the exit status: 0 for a closed pipe, else 1.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    say(format_args!("usdtrec: {error:#}"));
    ExitCode::FAILURE
}

/// Whether the reader of our output went away, which is a normal end.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

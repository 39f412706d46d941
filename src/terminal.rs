//! How things are said: results to stdout, everything else to stderr; a closed pipe as a normal end.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use std::sync::{Mutex, MutexGuard, PoisonError};
use usdtrec_format::PatternError;
#[cfg(feature = "record")]
use usdtrec_record::RecordError;

use usdtrec_format::escape::{escape, escape_bytes};

/// Says something on stderr. A stderr that is gone (a closed terminal) is no reason to stop working.
pub(crate) fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// What was asked for makes no sense: exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Prints an error with its causes and gives the exit status: 0 for a closed pipe, 2 for wrong usage, else 1.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    // Our own messages have several lines; names in them must not bring control characters along.
    let message = format!("usdtrec: {error:#}");
    message.lines().for_each(|line| say(escape(line)));
    if error.chain().any(is_usage) {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    #[cfg(feature = "record")]
    if let Some(RecordError::Usage(_)) = cause.downcast_ref() {
        return true;
    }
    cause.is::<Usage>() || cause.is::<PatternError>()
}

/// Whether the reader of our output went away, which is a normal end.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Says on stderr what is wrong with a file, going on.
pub(crate) fn warn(path: &Path, error: &dyn fmt::Display) {
    let path = escape_bytes(path.as_os_str().as_encoded_bytes());
    say(format_args!(
        "usdtrec: {path}: {}",
        escape(&error.to_string())
    ));
}

/// The content of a mutex, also after a thread that held it panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

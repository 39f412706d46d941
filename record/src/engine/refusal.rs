//! Errors of `perf_event_open(2)`, and their meaning.

use std::io;

use crate::RecordError;

/// The error for an event that the kernel refused.
pub(crate) fn refusal(source: io::Error) -> RecordError {
    RecordError::Kernel {
        what: format!("the kernel refuses a perf event{}", hint(&source)),
        source,
    }
}

/// What an error of `perf_event_open(2)` means, in brackets; empty if it says so itself.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => " (too many open files)",
        Some(libc::EACCES | libc::EPERM) => " (not permitted)",
        Some(libc::EINVAL) => {
            " (the file's bytes there are no instruction, or its semaphore is in use otherwise)"
        }
        _ => "",
    }
}

/// Whether the error means that the thread ended before its event was opened.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

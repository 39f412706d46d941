//! What the kernel's errors mean when it is asked for perf events.

use std::io;

use crate::RecordError;

/// The error of an event that was refused.
pub(crate) fn refusal(source: io::Error) -> RecordError {
    RecordError::Kernel {
        what: format!("the kernel refuses a perf event{}", hint(&source)),
        source,
    }
}

/// What to do about an error of `perf_event_open(2)`.
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

/// Whether a thread was gone before its event could be opened.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

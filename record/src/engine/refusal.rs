//! Errors of `perf_event_open(2)`, and their meaning.

use std::fs;
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
        Some(libc::EACCES | libc::EPERM) => match lockdown() {
            "" => " (not permitted)",
            lockdown => lockdown,
        },
        Some(libc::EINVAL) => {
            " (the file's bytes there are no instruction, or its semaphore is in use otherwise)"
        }
        _ => "",
    }
}

/// Why tracefs cannot be used, if that is the kernel's lockdown (kernel_lockdown(7)): `confidentiality` disables it, but neither programs nor
/// events of the uprobe PMU (seen on Linux 5.10 to 7.3).
pub(crate) fn lockdown() -> &'static str {
    let state = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if state.contains("[confidentiality]") {
        " (the kernel's lockdown, confidentiality, disables tracefs: perf events cannot follow processes here)"
    } else {
        ""
    }
}

/// Whether the error means that the thread ended before its event was opened.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

//! Errors of `perf_event_open(2)`, and their meaning.

use std::fs;
use std::io;

use usdtrec_format::Site;
use usdtrec_kernel::host::privilege;
use usdtrec_kernel::{ErrorMeaning, KernelError, KernelOperation};

use crate::error::RecordError;

/// The error for an event that the kernel refused.
pub(crate) fn refusal(source: io::Error) -> RecordError {
    let operation = KernelOperation::PerfEvent(meaning(&source));
    KernelError::operation(operation)(source).into()
}

/// What an error of `perf_event_open(2)` means; `None` if it says so itself.
pub(crate) fn meaning(error: &io::Error) -> Option<ErrorMeaning> {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Some(ErrorMeaning::TooManyFiles),
        Some(libc::EACCES | libc::EPERM) => Some(lockdown().unwrap_or_else(missing_privilege)),
        Some(libc::EINVAL) => Some(ErrorMeaning::NoInstruction),
        _ => None,
    }
}

/// What an error of attaching to a site means that was checked to be a nop; `None` if it says so itself.
pub(crate) fn site_meaning(error: &io::Error, site: &Site) -> Option<ErrorMeaning> {
    let is_invalid = error.raw_os_error() == Some(libc::EINVAL);
    (is_invalid && site.semaphore != 0).then_some(ErrorMeaning::OtherSemaphore)
}

/// Which privilege this process does not have.
fn missing_privilege() -> ErrorMeaning {
    if privilege::has_admin() {
        ErrorMeaning::NotPermitted
    } else if privilege::paranoid().is_some_and(|level| level > 2) {
        ErrorMeaning::Paranoid
    } else {
        ErrorMeaning::UprobePmuNeedsAdmin
    }
}

/// Why tracefs cannot be used, if that is the kernel's lockdown (kernel_lockdown(7)): `confidentiality` disables it, but neither programs nor
/// events of the uprobe PMU (seen on Linux 5.10 to 7.3).
pub(crate) fn lockdown() -> Option<ErrorMeaning> {
    let state = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let is_confidential = state.contains("[confidentiality]");
    is_confidential.then_some(ErrorMeaning::Lockdown)
}

/// Whether the error means that the thread or process ended before its event was opened, or its link created.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

//! The system call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Calls bpf(2). Returns a descriptor, or 0 for commands that open none.
///
/// # Safety
/// `attr` must have the layout of the command's part of `union bpf_attr`, and its pointers must be valid for the lengths in it.
pub(super) unsafe fn bpf<T>(command: i32, attr: &mut T) -> io::Result<i32> {
    // SAFETY: the caller's promise; the size passed is that of `attr`.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<T>()) };
    i32::try_from(result)
        .ok()
        .filter(|result| *result >= 0)
        .ok_or_else(last_error)
}

/// Calls bpf(2) for a command that returns a descriptor, which is close-on-exec.
///
/// # Safety
/// As for [`bpf`]; the command must return a new descriptor.
pub(super) unsafe fn open<T>(command: i32, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { bpf(command, attr) }?;
    // SAFETY: the command has just opened this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A descriptor as bpf(2) takes it.
pub(super) fn raw(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// The name of an object: letters, digits and `_`, of which the first 15 are kept.
pub(super) fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = from;
    }
    name
}

/// The error of the last system call. `ENOTSUPP` is an error of the kernel's own, for which the C library has no name.
fn last_error() -> io::Error {
    const ENOTSUPP: i32 = 524;
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(ENOTSUPP) => io::Error::new(
            io::ErrorKind::Unsupported,
            "not supported by this kernel (ENOTSUPP)",
        ),
        _ => error,
    }
}

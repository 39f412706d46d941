//! The user of a process.

use std::io;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

/// The user of whom nothing is known (`/proc/sys/fs/overflowuid`).
pub(crate) const NOBODY: u32 = 65534;

/// The effective user of a process: the owner of `/proc/PID`.
///
/// # Errors
/// The process has ended.
pub(crate) fn owner(pid: u32) -> io::Result<u32> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?;
    Ok(fstat(directory)?.st_uid)
}

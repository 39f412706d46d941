//! Processes in `/proc`: their users, and those whose first thread has ended while others run. `/proc/PID` of such a process has no mappings, memory, links or namespaces, and
//! its control group may be the root. The directories of its other threads have all of them.

use std::path::PathBuf;
use std::{fs, io};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

/// The id of a thread of a process in whose `/proc` directory the process's memory is found: that of the process, or, if its first thread
/// has ended, that of a thread that runs. The id of the process if no thread has memory: it has ended, or is a kernel thread.
#[must_use]
pub fn live_thread(pid: u32) -> u32 {
    // A task without memory has no executable file (fs/proc/base.c, `proc_exe_link`).
    let has_memory = |tid: u32| {
        let exe = fs::read_link(format!("/proc/{tid}/exe"));
        exe.map_or_else(
            |error| error.kind() != std::io::ErrorKind::NotFound,
            |_| true,
        )
    };
    if has_memory(pid) {
        return pid;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let names = tasks.into_iter().flatten().flatten();
    let mut tids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tids.find(|tid| *tid != pid && has_memory(*tid))
        .unwrap_or(pid)
}

/// The directory in `/proc` of a process's [live thread](live_thread).
#[must_use]
pub fn live_directory(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{}", live_thread(pid)))
}

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

//! The control group of a process and the program that it executes, by `/proc`.

use std::fs;
use std::os::unix::ffi::OsStringExt;

use rustix::time::{ClockId, clock_gettime};
use usdtrec_format::control_group::path_of_process;
use usdtrec_kernel::clocks::trace_clock::{self, nanoseconds};
use usdtrec_kernel::host::process::{EXITING, Process, live_directory};

/// What was read of a process.
#[derive(Debug)]
pub(super) struct ProcessPaths {
    /// The path of its control group; `None` if that is not known.
    pub(super) cgroup: Option<Vec<u8>>,
    /// The path of the program that it executed when this was read; `None` if that is not known.
    pub(super) exe: Option<Vec<u8>>,
    /// The time after that, ns of the trace's clock.
    pub(super) read_at: u64,
}

/// Reads the paths of the process that had a hit at `hit` (ns of the trace's clock); `None` if the process has ended.
pub(super) fn read(pid: i32, hit: u64) -> Option<ProcessPaths> {
    let directory = live_directory(pid);
    let lines = fs::read(directory.join("cgroup")).ok()?;
    let exe = fs::read_link(directory.join("exe")).ok();
    let read_at = trace_clock::now();
    // Read after the lines: a process that is not ending now was not ending then.
    let stat = Process::open(pid).and_then(|process| process.stat()).ok()?;
    if stat.started() > boot_time(hit) {
        // Another process has the id.
        return None;
    }
    // In hierarchies of version 1 a thread that is ending is in the root.
    let live = Process::in_directory(pid, &directory).and_then(|thread| thread.stat());
    let is_ending = live.ok()?.flags & EXITING != 0;
    Some(ProcessPaths {
        cgroup: path_of_process(&lines, is_ending).map(<[u8]>::to_vec),
        exe: exe.map(|path| path.into_os_string().into_vec()),
        read_at,
    })
}

/// The time since boot, ns, of a time of the trace's clock, if the host did not sleep since then; else a later time.
fn boot_time(time: u64) -> u64 {
    let boot = nanoseconds(clock_gettime(ClockId::Boottime));
    let since = boot - i128::from(trace_clock::now()) + i128::from(time);
    u64::try_from(since).unwrap_or(0)
}

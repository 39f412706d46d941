//! The control group of a process, by `/proc`.

use std::fs;

use rustix::time::{ClockId, clock_gettime};
use usdtrec_format::control_group::path_of_process;

use crate::clocks::trace_clock::{self, nanoseconds};
use crate::host::process::{EXITING, Process};

/// The path of the control group of the process that had a hit at `hit` (ns of the trace's clock); `None` if the process has ended.
pub(super) fn path(pid: i32, hit: u64) -> Option<Vec<u8>> {
    let lines = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    // Read after the lines: a process that is not ending now was not ending then.
    let stat = Process::open(pid).and_then(|process| process.stat()).ok()?;
    if stat.started() > boot_time(hit) {
        // Another process has the id.
        return None;
    }
    // In hierarchies of version 1 a process that is ending is in the root.
    let is_ending = stat.flags & EXITING != 0;
    path_of_process(&lines, is_ending).map(<[u8]>::to_vec)
}

/// The time since boot, ns, of a time of the trace's clock, if the host did not sleep since then; else a later time.
fn boot_time(time: u64) -> u64 {
    let boot = nanoseconds(clock_gettime(ClockId::Boottime));
    let since = boot - i128::from(trace_clock::now()) + i128::from(time);
    u64::try_from(since).unwrap_or(0)
}

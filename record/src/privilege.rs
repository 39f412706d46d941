//! What the kernel wants of those who record.

use std::fs;

use crate::RecordError;

/// `CAP_SYS_ADMIN` and `CAP_PERFMON` (`include/uapi/linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// Checks that uprobe perf events may be opened: `perfmon_capable()` in `perf_uprobe_event_init`
/// (`kernel/events/core.c`), `CAP_SYS_ADMIN` before Linux 5.8.
///
/// # Errors
/// [`RecordError::Privilege`] says what is missing.
pub fn check() -> Result<(), RecordError> {
    if capabilities().is_none_or(|has| has & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON) != 0) {
        return Ok(());
    }
    let uid = rustix::process::geteuid().as_raw();
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    Err(RecordError::Privilege(format!(
        "recording needs CAP_PERFMON, or root (you are uid {uid}, perf_event_paranoid is {})",
        paranoid.trim()
    )))
}

/// The effective capabilities (proc(5), `CapEff`); `None` if they cannot be read.
fn capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

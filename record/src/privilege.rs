//! What the kernel wants of those who record.

use std::fs;

use crate::RecordError;

/// `include/uapi/linux/capability.h`
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Checks that an engine may work: uprobe_multi links need `CAP_BPF` and `CAP_PERFMON`, events of the uprobe PMU
/// `CAP_SYS_ADMIN` (seen on Linux 6.18), which stands for the other two, too.
///
/// # Errors
/// [`RecordError::Privilege`] says what is missing.
pub fn check() -> Result<(), RecordError> {
    const PROGRAMS: u64 = 1 << CAP_BPF | 1 << CAP_PERFMON;
    if capabilities().is_none_or(|has| has & 1 << CAP_SYS_ADMIN != 0 || has & PROGRAMS == PROGRAMS)
    {
        return Ok(());
    }
    let uid = rustix::process::geteuid().as_raw();
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = paranoid.trim().to_owned();
    Err(RecordError::Privilege { uid, paranoid })
}

/// The effective capabilities (proc(5), `CapEff`); `None` if they cannot be read.
fn capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

//! The capabilities that recording needs.

use std::fs;

use rustix::thread::{CapabilitySet, capabilities};

use crate::KernelError;

/// Checks that an engine can work: uprobe_multi links need `CAP_BPF` and `CAP_PERFMON`, events of the uprobe PMU
/// need `CAP_SYS_ADMIN` (seen on Linux 6.18), which includes the other two.
///
/// # Errors
/// [`KernelError::Privilege`].
pub fn check() -> Result<(), KernelError> {
    const PROGRAMS: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
    let is_enough =
        |has: CapabilitySet| has.contains(CapabilitySet::SYS_ADMIN) || has.contains(PROGRAMS);
    // If they cannot be read, the kernel decides.
    if capabilities(None).map_or(true, |has| is_enough(has.effective)) {
        return Ok(());
    }
    let uid = rustix::process::geteuid().as_raw();
    let paranoid = paranoid().map_or_else(String::new, |level| level.to_string());
    Err(KernelError::Privilege { uid, paranoid })
}

/// Whether this process has `CAP_SYS_ADMIN`; also if that cannot be read.
#[must_use]
pub fn has_admin() -> bool {
    is_effective(CapabilitySet::SYS_ADMIN)
}

/// Whether this process may read the memory of those of other users (`CAP_SYS_PTRACE`); also if that cannot be read.
pub fn may_read_processes() -> bool {
    is_effective(CapabilitySet::SYS_PTRACE)
}

fn is_effective(capability: CapabilitySet) -> bool {
    capabilities(None).map_or(true, |has| has.effective.contains(capability))
}

/// `kernel.perf_event_paranoid`: what the kernel permits to users without privileges, -1 for everything.
pub fn paranoid() -> Option<i32> {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    level.ok()?.trim().parse().ok()
}

//! What a caller checks before it records.

use usdtrec_kernel::host::{cpus, privilege};

use crate::error::RecordError;
use crate::usage_error::UsageError;

/// Checks that an engine can work: uprobe_multi links need `CAP_BPF` and `CAP_PERFMON`, events of the uprobe PMU `CAP_SYS_ADMIN`.
///
/// # Errors
/// [`KernelError::Privilege`](usdtrec_kernel::KernelError::Privilege).
pub fn check_privilege() -> Result<(), RecordError> {
    Ok(privilege::check()?)
}

/// Parses a CPU list; the result is sorted and without repeats.
///
/// # Errors
/// [`UsageError::CpuList`] with the part that is no CPU number or range, or a range of more than 65,536 CPUs.
pub fn parse_cpus(list: &str) -> Result<Vec<u32>, RecordError> {
    Ok(cpus::parse(list).map_err(UsageError::from)?)
}

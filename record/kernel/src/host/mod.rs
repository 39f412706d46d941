//! The description of the recording machine in the trace.

pub mod cached_pages;
pub mod capabilities;
pub mod cpus;
pub mod descendants;
pub mod identity;
pub mod inherited;
pub mod kernel_version;
pub mod limits;
pub mod memory;
pub mod named_process;
pub mod page_reading;
pub mod process;
pub mod run_directory;
pub mod stuck_mappings;

use std::fs;

use rustix::time::{ClockId, clock_getres};
use usdtrec_format::trace::{Clock, TraceInfo};

use crate::KernelError;
use crate::trace_clock::{self, nanoseconds};

/// The head of a trace recorded here, without events and definitions.
///
/// # Errors
/// [`KernelError::Host`] if the CPUs cannot be read.
pub fn describe(version: &str, command: Vec<String>) -> Result<TraceInfo, KernelError> {
    let uname = rustix::system::uname();
    Ok(TraceInfo {
        hostname: uname.nodename().to_string_lossy().into_owned(),
        os_release: uname.release().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        version: version.to_owned(),
        cpu_description: field("/proc/cpuinfo", "model name"),
        total_memory_kb: field("/proc/meminfo", "MemTotal")
            .trim_end_matches(" kB")
            .parse()
            .unwrap_or(0),
        cpus_available: cpus::available()?,
        cpus_online: u32::try_from(cpus::online()?.len()).unwrap_or(u32::MAX),
        command,
        clock: Some(clock()),
        ..TraceInfo::default()
    })
}

/// The monotonic clock, with this moment on it and on the wall clock.
fn clock() -> Clock {
    Clock {
        id: libc::CLOCK_MONOTONIC as u32,
        resolution_ns: u64::try_from(nanoseconds(clock_getres(ClockId::Monotonic))).unwrap_or(0),
        wall_ns: trace_clock::wall(),
        clock_ns: trace_clock::now(),
    }
}

/// The value of the first `name: value` line of a file; empty if there is none.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name);
    line.map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

/// The kernel's id of this boot; `None` if it cannot be read.
pub fn boot_id() -> Option<String> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot_id = boot_id.trim();
    (!boot_id.is_empty()).then(|| boot_id.to_owned())
}

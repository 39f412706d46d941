//! The head of a trace: the machine, the command, the events and the probe definitions.

use crate::definitions::Definitions;
use crate::perf::{BuildIdEntry, EventAttr, Pmu, TracepointFormat};

/// The head of a trace: the contents of perf's feature sections. Fields that a file does not have are empty or 0.
#[derive(Clone, Debug, Default)]
pub struct TraceInfo {
    /// `HOSTNAME`.
    pub hostname: String,
    /// `OSRELEASE`: kernel release.
    pub os_release: String,
    /// `ARCH`: machine name of uname(2).
    pub machine: String,
    /// `VERSION`: the program that wrote the file (`usdtrec 0.1.0`).
    pub version: String,
    /// `CPUDESC`.
    pub cpu_description: String,
    /// `TOTAL_MEM`: size of the memory, kB.
    pub total_memory_kb: u64,
    /// `NRCPUS`: highest CPU number plus 1.
    pub cpus_available: u32,
    /// `NRCPUS`: number of CPUs on line.
    pub cpus_online: u32,
    /// `CMDLINE`: command line of the recorder.
    pub command: Vec<String>,
    /// `CLOCKID` and `CLOCK_DATA`.
    pub clock: Option<Clock>,
    /// `PMU_MAPPINGS`: the PMUs of the host.
    pub pmus: Vec<Pmu>,
    /// `BUILD_ID`: files with samples. usdtrec's traces have build-ids in their mapping records instead.
    pub build_ids: Vec<BuildIdEntry>,
    /// The attrs, with names from `EVENT_DESC`.
    pub events: Vec<EventAttr>,
    /// `TRACING_DATA`: the formats of the tracepoints among the events.
    pub tracepoints: Vec<TracepointFormat>,
    /// Probe definitions; `None` in traces of other programs.
    pub definitions: Option<Definitions>,
}

/// The clock of the trace's times, and its relation to the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `clockid_t` (1: `CLOCK_MONOTONIC`).
    pub id: u32,
    /// Resolution, ns.
    pub resolution_ns: u64,
    /// `CLOCK_REALTIME` at the reference time, ns since 1970.
    pub wall_ns: u64,
    /// This clock at the reference time, ns.
    pub clock_ns: u64,
}

/// Number of events that were lost for a sample id (`PERF_FORMAT_LOST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Loss {
    /// Index of the event in [`TraceInfo::events`].
    pub event: usize,
    /// Sample id.
    pub id: u64,
    /// Number of lost events.
    pub lost: u64,
}

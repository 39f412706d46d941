//! What a trace says of the machine and the run, outside its records.

use std::path::PathBuf;

use crate::perf::{EventAttr, TracepointFormat};
use crate::{BuildId, Definitions};

/// Head of a trace: perf's feature sections, by their meaning. When read from a file, what it lacks is empty or 0.
#[derive(Clone, Debug, Default)]
pub struct TraceInfo {
    /// `HOSTNAME`.
    pub hostname: String,
    /// `OSRELEASE`: the kernel's release.
    pub os_release: String,
    /// `ARCH`: machine as uname says it.
    pub machine: String,
    /// `VERSION`: the program that wrote the file (`usdtrec 0.1.0`).
    pub version: String,
    /// `CPUDESC`.
    pub cpu_description: String,
    /// `TOTAL_MEM`: kB.
    pub total_memory_kb: u64,
    /// `NRCPUS`: highest CPU number plus 1.
    pub cpus_available: u32,
    /// `NRCPUS`: CPUs on line.
    pub cpus_online: u32,
    /// `CMDLINE`.
    pub command: Vec<String>,
    /// `CLOCKID` and `CLOCK_DATA`.
    pub clock: Option<Clock>,
    /// `PMU_MAPPINGS`: number and name.
    pub pmus: Vec<(u32, String)>,
    /// `BUILD_ID`: files that samples hit, in files of perf's; ours have build-ids in their mapping records.
    pub build_ids: Vec<(BuildId, PathBuf)>,
    /// attrs, with `EVENT_DESC`.
    pub events: Vec<EventAttr>,
    /// `TRACING_DATA`: the formats of the tracepoints among the events.
    pub tracepoints: Vec<TracepointFormat>,
    /// Probe definitions; `None` in files of other programs.
    pub definitions: Option<Definitions>,
}

/// The clock of the trace's times, with one moment on it and on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `clockid_t` (1: `CLOCK_MONOTONIC`).
    pub id: u32,
    /// Resolution, ns.
    pub resolution_ns: u64,
    /// `CLOCK_REALTIME` at the moment, ns since 1970.
    pub wall_ns: u64,
    /// This clock at the moment, ns.
    pub clock_ns: u64,
}

/// Events that one sample id lost, exactly (`PERF_FORMAT_LOST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Loss {
    /// Index of the event in [`TraceInfo::events`].
    pub event: usize,
    /// Sample id.
    pub id: u64,
    /// Events lost.
    pub lost: u64,
}

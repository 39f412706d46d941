//! How probes are attached.

use std::fmt;

use usdtrec_kernel::signals::EndSignal;

use super::events::event::UprobePmu;
use crate::aggregation::Aggregation;
use crate::budget::Budget;
use crate::callbacks::Caution;
use crate::chosen::ProcessChoice;
use crate::plan::call_graph::CallGraph;
use crate::plan::layout::Strings;

/// Options of the engine of a recording.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The engines to try.
    pub choice: EngineChoice,
    /// CPUs to record on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Size of the ring of each CPU, bytes, a power of two; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// Which arguments are read as strings.
    pub strings: Strings,
    /// How the callers of hits are recorded; `None` if they are not.
    pub graph: Option<CallGraph>,
    /// Whether memory that is not resident is faulted in.
    pub nonresident: NonResident,
    /// Whether threads that map files which are not known are held until the probes of these are attached; `None` if they are not.
    pub no_gap: Option<GapHold>,
    /// The processes, of those of the target, whose hits are recorded.
    pub processes: ProcessChoice,
    /// What is aggregated in the kernel; `None` if hits are recorded.
    pub aggregation: Option<Aggregation>,
    /// Spans of which only slow ones are recorded; `None` if hits are. With perf events, all hits are recorded unless it is an error.
    pub slow_spans: Option<SlowSpans>,
    /// The part of the traced threads' time that probes may take; `None` for no limit. Needs [`EngineChoice::BpfMulti`].
    pub budget: Option<Budget>,
    /// Whether the thread context of each hit is read ([`usdtrec_format::ThreadContext`]).
    pub thread_context: bool,
    /// Whether each hit has how long its thread has waited ([`usdtrec_format::ThreadWaits`]).
    pub off_cpu: bool,
    /// Time of the shortest waits of these threads that have events, ns; `None` if none have. Needs [`off_cpu`](Self::off_cpu).
    pub least_wait: Option<u64>,
}

impl EngineOptions {
    /// Time of the shortest waits that are written, ns; `None` if none are.
    pub(super) fn least_written_wait(&self) -> Option<u64> {
        self.least_wait
            .filter(|_| self.off_cpu && self.aggregation.is_none())
    }
}

/// Whether memory that is not resident is faulted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NonResident {
    /// If the page fault cannot take arbitrarily long.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Always, however long the page fault takes.
    Always,
}

/// The options of an engine, and what they are applied to.
#[derive(Clone)]
pub struct AttachRequest<'a> {
    /// What is recorded, and how.
    pub options: &'a EngineOptions,
    /// The threads and CPUs to open events for.
    pub perf_target: PerfTarget,
    /// Whose hits are recorded.
    pub filter: TaskFilter,
    /// The uprobe PMU.
    pub pmu: UprobePmu,
    /// Whether attaching is to end.
    pub end_signal: &'a EndSignal,
    /// Whether no probe may be left of files that nobody named, because others are waited for.
    pub may_wait: bool,
    /// Called with what the user should know before the recording begins.
    pub say: &'a dyn Fn(&Caution),
}

/// Number of perf events from which on their end is announced.
const ANNOUNCED_EVENTS: usize = 100;
/// Time that the kernel takes to remove one, ms, measured on Linux 6.18: RCU grace periods under a global lock.
const EACH_MS: usize = 90;

impl AttachRequest<'_> {
    /// Announces the removal of perf events, if it takes long.
    pub fn announce(&self, events: usize) {
        if events >= ANNOUNCED_EVENTS {
            let seconds = (events * EACH_MS).div_ceil(1000);
            (self.say)(&Caution::SlowEnd { events, seconds });
        }
    }
}

/// Spans of which only the slow ones are recorded, each by the hit that begins it and the hit that ends it. Hits of other probes are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowSpans {
    /// `START..DONE`, or names of those that are found by the names of probes, with globs.
    pub spans: Vec<String>,
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Duration of the shortest ones that are recorded, ns.
    pub least: u64,
    /// Whether it is an error if programs cannot match them. If not, all hits of spans that they cannot match are recorded.
    pub is_required: bool,
}

/// Whose hits are recorded, as programs check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFilter {
    /// Hits of all processes.
    All,
    /// Hits of these processes and of the children that they start later.
    Processes(Vec<u32>),
    /// Hits of these processes without children.
    ProcessesAlone(Vec<u32>),
    /// Hits of these threads.
    Threads(Vec<u32>),
}

/// The threads and CPUs that are recorded, as `perf_event_open(2)` takes them.
#[derive(Clone, Debug, Default)]
pub struct PerfTarget {
    /// Threads; only -1 for all.
    pub tids: Vec<i32>,
    /// CPUs, sorted.
    pub cpus: Vec<u32>,
    /// Whether later threads and children are recorded, too.
    pub inherit: bool,
    /// Whether the kernel enables the events at the next `execve(2)` of the thread.
    pub enable_on_exec: bool,
}

/// Whether a thread that maps a file which is not known must be held until the probes of the file are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapHold {
    /// In the kernel (Linux 6.18), if that is possible: no other process notices.
    Auto,
    /// The same; an error if it is not possible.
    Required,
}

/// An attach method of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachMethod {
    /// One uprobe_multi link for each program and file (Linux 6.6).
    Multi,
    /// One event of the uprobe PMU for each site, with a link to the program (Linux 5.15).
    Event,
}

impl AttachMethod {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Multi => "uprobe_multi",
            Self::Event => "uprobe PMU",
        }
    }
}

impl fmt::Display for AttachMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An engine, and optionally its attach method. If several are allowed, the best ones are tried first, and the first that works is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Programs if the kernel allows them, else perf events.
    #[default]
    Auto,
    /// Programs.
    Bpf,
    /// Programs, attached by uprobe_multi links.
    BpfMulti,
    /// Programs, attached to events of the uprobe PMU.
    BpfPerf,
    /// Perf events.
    Perf,
    /// Perf events on tracefs events.
    PerfTracefs,
    /// Perf events of the uprobe PMU.
    PerfPmu,
}

impl EngineChoice {
    /// The attach methods of programs to try, in order.
    pub(super) const fn bpf_attach_methods(self) -> &'static [AttachMethod] {
        match self {
            Self::Auto | Self::Bpf => &[AttachMethod::Multi, AttachMethod::Event],
            Self::BpfMulti => &[AttachMethod::Multi],
            Self::BpfPerf => &[AttachMethod::Event],
            Self::Perf | Self::PerfTracefs | Self::PerfPmu => &[],
        }
    }
}

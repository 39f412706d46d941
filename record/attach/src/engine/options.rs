//! How probes are attached.

use usdtrec_kernel::signals::EndSignal;

use super::bpf::NonResident;
use super::choice::EngineChoice;
use super::events::pmu::UprobePmu;
use super::gap_hold::GapHold;
use super::perf_target::PerfTarget;
use super::task_filter::TaskFilter;
use crate::aggregation::Aggregation;
use crate::budget::Budget;
use crate::callbacks::Caution;
use crate::chosen::ProcessChoice;
use crate::plan::call_graph::CallGraph;
use crate::plan::layout::Strings;
use crate::slow_spans::SlowSpans;

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
    /// Whether memory that is not resident is brought in.
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

//! How probes are attached.

use super::bpf::NonResident;
use super::choice::EngineChoice;
use super::events::pmu::UprobePmu;
use super::task_filter::TaskFilter;
use super::watch::Watch;
use crate::plan::call_graph::CallGraph;
use crate::plan::layout::Strings;
use crate::recording::attach_callbacks::Planting;

/// Options of the engine of a recording.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The engines to try.
    pub choice: EngineChoice,
    /// CPUs to record on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Size of the ring of each CPU, bytes, a power of two; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// Number of bytes of stack that perf events copy for operands whose distance from the stack pointer is unknown.
    pub stack: u32,
    /// Which arguments are read as strings.
    pub strings: Strings,
    /// How the callers of hits are recorded; `None` if they are not.
    pub graph: Option<CallGraph>,
    /// Whether memory that is not resident is brought in.
    pub nonresident: NonResident,
    /// Stop processes instead of losing their hits.
    pub lossless: bool,
    /// Whether the thread context of each hit is read ([`usdtrec_format::ThreadContext`]).
    pub thread_context: bool,
}

/// The options of an engine, and what they are applied to.
#[derive(Clone, Debug)]
pub(crate) struct AttachRequest<'a> {
    pub(crate) options: &'a EngineOptions,
    /// The threads and CPUs to open events for.
    pub(crate) watch: Watch,
    /// Whose hits are recorded.
    pub(crate) filter: TaskFilter,
    /// The uprobe PMU.
    pub(crate) pmu: UprobePmu,
    /// Callbacks of attaching.
    pub(crate) planting: Planting<'a>,
}

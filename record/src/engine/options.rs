//! How probes are attached.

use super::bpf::NonResident;
use super::choice::Engine;
use super::watch::Watch;
use crate::engine::task_filter::TaskFilter;
use crate::plan::call_graph::CallGraph;
use crate::plan::layout::Strings;
use crate::planting::Planting;

/// How probes are attached.
#[derive(Clone, Debug)]
pub(crate) struct AttachOptions<'a> {
    /// The threads and CPUs to open events for.
    pub(crate) watch: Watch,
    /// Whose hits are recorded.
    pub(crate) filter: TaskFilter,
    /// Whether only hits on the CPUs of `watch` are recorded; otherwise these are all CPUs.
    pub(crate) some_cpus: bool,
    /// Size of the ring of each CPU, bytes; `None` for the default.
    pub(crate) ring_bytes: Option<usize>,
    /// The engine.
    pub(crate) engine: Engine,
    /// Which arguments are read as strings.
    pub(crate) strings: Strings,
    /// Number of bytes of stack that perf events copy for operands whose distance from the stack pointer is unknown.
    pub(crate) stack: u32,
    /// How the callers are found; `None` if they are not recorded.
    pub(crate) graph: Option<CallGraph>,
    /// Whether memory that is not resident is brought in.
    pub(crate) nonresident: NonResident,
    /// Stop processes instead of losing their hits.
    pub(crate) lossless: bool,
    /// Callbacks of attaching.
    pub(crate) planting: Planting<'a>,
}

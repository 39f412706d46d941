//! How the bpf engine records.

use usdtrec_format::perf::Attr;

use super::attach_method::AttachMethod;
use super::nonresident::NonResident;
use crate::engine::pmu::UprobePmu;
use crate::engine::task_filter::TaskFilter;
use crate::plan::call_graph::CallGraph;
use crate::plan::layout::Strings;
use crate::planting::Planting;

/// How the bpf engine records.
#[derive(Clone, Debug)]
pub(crate) struct BpfOptions<'a> {
    /// Attach methods to try, in this order.
    pub(crate) attach_methods: &'a [AttachMethod],
    /// Whose hits are recorded.
    pub(crate) filter: TaskFilter,
    /// CPUs that get a ring of their own, sorted: all that are on line, or those recorded.
    pub(crate) cpus: &'a [u32],
    /// Whether only hits on these are recorded.
    pub(crate) some_cpus: bool,
    /// Size of each ring, bytes, a power of two.
    pub(crate) ring_bytes: usize,
    /// Which arguments are read as strings.
    pub(crate) strings: Strings,
    /// How the callers are found; `None` if they are not recorded.
    pub(crate) graph: Option<CallGraph>,
    /// Whether memory that is not resident is brought in.
    pub(crate) nonresident: NonResident,
    /// Stop processes instead of losing their hits.
    pub(crate) lossless: bool,
    /// The smallest free sample id.
    pub(crate) first_id: u64,
    /// The attr of the session's other events.
    pub(crate) metadata: &'a Attr,
    /// The uprobe PMU.
    pub(crate) pmu: UprobePmu,
    /// Callbacks of attaching.
    pub(crate) planting: Planting<'a>,
}

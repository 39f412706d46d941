//! What is asked of the bpf engine, and how it says that it cannot.

use std::io;

use usdtrec_format::perf::Attr;

use super::attach_method::AttachMethod;
use super::nonresident::NonResident;
use crate::RecordError;
use crate::plan::layout::Strings;
use crate::planting::Planting;
use crate::target::Filter;

/// What is asked of the engine.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// Ways to plant that may be tried, in this order.
    pub(crate) attach_methods: &'a [AttachMethod],
    /// Whose hits count.
    pub(crate) filter: Filter,
    /// CPUs recorded; `None` for all.
    pub(crate) cpus: Option<&'a [u32]>,
    /// Bytes of the ring, a power of two.
    pub(crate) ring_bytes: usize,
    /// Which strings are read.
    pub(crate) strings: Strings,
    /// What is done about memory that is not resident.
    pub(crate) nonresident: NonResident,
    /// Stop processes rather than lose their hits.
    pub(crate) lossless: bool,
    /// The smallest sample id that is free.
    pub(crate) first_id: u64,
    /// The attr of the session's other events.
    pub(crate) metadata: &'a Attr,
    /// Number of the uprobe PMU.
    pub(crate) pmu: u32,
    /// What ends the planting, and hears of its cost.
    pub(crate) planting: Planting<'a>,
}

/// That programs cannot be used, and why.
pub(super) fn refused(reason: &str) -> RecordError {
    RecordError::Kernel {
        what: format!("the bpf engine cannot be used: {reason}"),
        source: io::Error::from(io::ErrorKind::Unsupported),
    }
}

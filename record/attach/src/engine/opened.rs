//! What opening an engine results in.

use usdtrec_format::perf::EventAttr;

use crate::select::probe::{PlannedProbe, RefusedProbe};

/// An engine with attached probes, disabled.
#[derive(Debug)]
pub struct Opened<E> {
    pub(super) engine: E,
    /// The probes that are attached.
    pub(super) probes: Vec<PlannedProbe>,
    /// Their attrs, in the same order.
    pub(super) attrs: Vec<ProbeAttr>,
    /// The planned probes that the kernel refused.
    pub(super) refused: Vec<RefusedProbe>,
}

/// The attr of an attached probe.
#[derive(Debug)]
pub struct ProbeAttr {
    /// The attr of the trace, with name and ids.
    pub attr: EventAttr,
    /// The sample ids of each site, in the order of the plan's sites.
    pub site_ids: Vec<Vec<u64>>,
}

impl<E> Opened<E> {
    /// The same, with what `make` makes of the engine.
    pub(super) fn with<T>(self, make: impl FnOnce(E) -> T) -> Opened<T> {
        Opened {
            engine: make(self.engine),
            probes: self.probes,
            attrs: self.attrs,
            refused: self.refused,
        }
    }
}

//! What is known of the attached probes: how they are attached, and the counts of the kernel.

use std::io;
use std::sync::Arc;

use usdtrec_format::perf::TracepointFormat;

use super::attached::{Attached, Way};
use super::bpf::{EverywhereReason, HeldProcesses, SkippedMethod};
use super::event::IdCount;
use super::in_kernel::InKernel;
use super::used::UsedEngine;

impl Attached {
    /// The engine, and the attach method.
    pub(crate) fn engine(&self) -> UsedEngine {
        match &self.way {
            Way::Pmu => UsedEngine::PerfPmu,
            Way::Tracefs(_) => UsedEngine::PerfTracefs,
            Way::Bpf(bpf) => UsedEngine::Bpf(bpf.attach_method()),
        }
    }

    /// Whether probes are attached to the recorded processes and their children only.
    pub(crate) fn spares_strangers(&self) -> bool {
        matches!(&self.way, Way::Bpf(bpf) if bpf.is_apart())
    }

    /// Why probes were attached to all processes of the files, after they had been attached to the recorded processes only; `None` if they
    /// were not.
    pub(crate) fn planted_everywhere(&self) -> Option<EverywhereReason> {
        match &self.way {
            Way::Bpf(bpf) => bpf.planted_everywhere(),
            _ => None,
        }
    }

    /// The processes that are held until the probes are attached to them; `None` if none are.
    pub(crate) fn held(&self) -> Option<&Arc<HeldProcesses>> {
        match &self.way {
            Way::Bpf(bpf) => bpf.held(),
            _ => None,
        }
    }

    /// What is open in the kernel for the probes.
    pub(crate) fn in_kernel(&self) -> InKernel<'_> {
        match &self.way {
            Way::Bpf(bpf) => InKernel::Programs {
                programs: bpf.programs(),
                nonresident: bpf.nonresident(),
                not_faulted_in: bpf.not_faulted_in(),
                links: bpf.links(),
                scope: bpf.scope(),
            },
            _ => InKernel::PerfEvents(self.site_events().count()),
        }
    }

    /// The formats of the samples' raw parts, for stock perf.
    pub(crate) fn formats(&self) -> Vec<TracepointFormat> {
        match &self.way {
            Way::Bpf(bpf) => bpf.formats(),
            _ => Vec::new(),
        }
    }

    /// How often stopping processes was suspended, because the ring was not drained for long.
    pub(crate) fn suspensions(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.suspensions(),
            _ => 0,
        }
    }

    /// The attach methods of programs that do not work here, with the errors.
    pub(crate) fn skipped(&self) -> &[SkippedMethod] {
        match &self.way {
            Way::Bpf(bpf) => bpf.skipped(),
            _ => &[],
        }
    }

    /// Number of hits of which no stack was taken, because of the rate.
    pub(crate) const fn without_stack(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.without_stack(),
            _ => 0,
        }
    }

    /// Number of lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub(crate) fn unjudged(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.unjudged(),
            _ => 0,
        }
    }

    /// Number of processes that may have run before they had probes. Their first hits are not in the trace.
    pub(crate) fn missed(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.missed(),
            _ => 0,
        }
    }

    /// The count of each sample id.
    pub(crate) fn counts(&self) -> Box<dyn Iterator<Item = io::Result<IdCount>> + '_> {
        if let Way::Bpf(bpf) = &self.way {
            return Box::new(bpf.counts().map(Ok));
        }
        let planted = self.planted.iter().enumerate();
        Box::new(planted.flat_map(|(probe, planted)| {
            let events = planted.events.iter();
            events.map(move |event| {
                Ok(IdCount {
                    probe,
                    id: event.id,
                    count: event.count()?,
                })
            })
        }))
    }
}

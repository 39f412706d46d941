//! The perf engine: one perf event for each site, traced thread and CPU.

mod attach;
mod check;
pub(super) mod inexact;
mod method;
mod online;
mod open;
pub(super) mod owner;
mod split;
pub(super) mod tracefs;
pub(super) mod tracefs_group;

use std::io;
use std::os::fd::OwnedFd;

use self::inexact::InexactCounts;
use super::bpf::StackUse;
use super::events::event::{Event, IdCount, Mode, SiteEvent};
use super::events::pmu::UprobePmu;
use super::events::rings::Rings;
use super::guard_process::GuardDeath;
use super::in_kernel::InKernel;
use super::outcome::EngineOutcome;
use super::release::Descriptors;
use super::used_engine::UsedEngine;

pub(super) use self::check::{check, check_probe, keeps_copies};
pub(super) use self::method::PerfMethod;
pub(super) use self::split::split;

/// Probes that are attached with perf events. Dropping it detaches all of them.
#[derive(Debug)]
pub struct PerfEngine {
    /// The events of each probe, in the order of the attached probes.
    probes: Vec<ProbeEvents>,
    /// One for each CPU.
    rings: Rings,
    method: PerfMethod,
    pmu: UprobePmu,
    /// Settings of the events.
    mode: Mode,
    inexact: Option<InexactCounts>,
}

/// The perf events of one attached probe.
#[derive(Debug)]
struct ProbeEvents {
    events: Vec<Event>,
    sites: Vec<SiteEvents>,
}

/// The perf events of one site.
#[derive(Debug)]
struct SiteEvents {
    /// The kernel's event of the site.
    place: SiteEvent,
    /// Sample id of the first perf event; `None` if all traced threads had ended.
    first_id: Option<u64>,
}

impl PerfEngine {
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.probes.iter().flat_map(|probe| &probe.events)
    }

    /// The engine, and the attach method.
    pub(super) const fn used(&self) -> UsedEngine {
        match self.method {
            PerfMethod::Pmu => UsedEngine::PerfPmu,
            PerfMethod::Tracefs(_) => UsedEngine::PerfTracefs,
        }
    }

    /// What is open in the kernel for the probes.
    pub(super) fn in_kernel(&self) -> InKernel<'_> {
        InKernel::PerfEvents(self.events().count())
    }

    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    pub(super) const fn inexact(&self) -> Option<InexactCounts> {
        self.inexact
    }

    pub(super) const fn rings(&self) -> &Rings {
        &self.rings
    }

    /// Size of each ring, bytes.
    pub(super) fn ring_bytes(&self) -> usize {
        self.rings.bytes()
    }

    /// Enables the events, unless the kernel does so at the `execve(2)` of the command.
    pub(super) fn enable(&self) -> io::Result<()> {
        if self.mode.enable_on_exec {
            return Ok(());
        }
        self.events().try_for_each(Event::enable)
    }

    /// Disables the events; the rings keep their records.
    pub(super) fn disable(&self) -> io::Result<()> {
        self.events().try_for_each(Event::disable)
    }

    /// One pass over the rings.
    pub(super) fn drain(&mut self, mut sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>) {
        self.rings.drain(|records| drop(sink(records)));
    }

    /// The last pass, after [`disable`](Self::disable).
    pub(super) fn end(&mut self, sink: impl FnMut(&[u8])) -> EngineOutcome {
        self.rings.drain(sink);
        EngineOutcome {
            may_lack_strings: true,
            ..EngineOutcome::default()
        }
    }

    /// The count of each event. Those of a CPU that came on line later have the sample id of another.
    pub(super) fn counts(&self) -> io::Result<Vec<IdCount>> {
        let probes = self.probes.iter().enumerate();
        let events = probes.flat_map(|(index, probe)| {
            let events = probe.events.iter();
            events.map(move |event| {
                Ok(IdCount {
                    probe: index,
                    id: event.id,
                    count: event.count()?,
                })
            })
        });
        events.collect()
    }

    /// Takes the descriptors that keep the probes attached.
    pub(super) fn take_descriptors(&mut self) -> Descriptors {
        let events = self.probes.iter_mut();
        let events = events.flat_map(|probe| std::mem::take(&mut probe.events));
        Descriptors {
            events: events.map(OwnedFd::from).collect(),
            ..Descriptors::default()
        }
    }

    /// Leaves the tracefs events to the guard, because the kernel may not let them be removed now.
    pub(super) fn leave_to_guard(&mut self) {
        match &mut self.method {
            PerfMethod::Pmu => {}
            PerfMethod::Tracefs(group) => group.leave_to_guard(),
        }
    }

    /// Starts another guard of the tracefs events if it was killed. Returns that it was.
    pub(super) fn replace_guard(&mut self) -> Option<GuardDeath> {
        match &mut self.method {
            PerfMethod::Pmu => None,
            PerfMethod::Tracefs(group) => group.replace_guard(),
        }
    }
}

impl Drop for PerfEngine {
    fn drop(&mut self) {
        if !self.take_descriptors().close() {
            self.leave_to_guard();
        }
    }
}

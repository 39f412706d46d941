//! The perf engine: one perf event for each site, traced thread and CPU.

pub(super) mod attach;
pub(super) mod owner;
pub(super) mod tracefs_group;

use std::os::fd::OwnedFd;
use std::{fs, io};

use self::tracefs_group::Group;
use super::bpf::StackUse;
use super::events::event::{Event, IdCount, Mode, SiteEvent, UprobePmu};
use super::events::rings::Rings;
use super::guard_process::GuardDeath;
use super::options::{AttachRequest, EngineChoice, EngineOptions, NonResident, PerfTarget};
use super::outcome::{EngineOutcome, InKernel, InexactCounts, UsedEngine};
use super::release::Descriptors;
use crate::error::{ProgramFeature, RecordError, UsageError};
use crate::filter;
use crate::plan::call_graph::{CallGraph, CallGraphMethod};
use crate::select::probe::PlannedProbe;

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

/// The attach method of perf events.
#[derive(Debug)]
pub enum PerfMethod {
    /// The uprobe PMU: nothing outlives the descriptors, and nothing can be inherited.
    Pmu,
    /// tracefs events.
    Tracefs(Group),
}

impl PerfMethod {
    /// The first method that works: events of the uprobe PMU count wrong on several CPUs, so they are the last resort.
    pub fn choose(request: &AttachRequest<'_>) -> Result<Self, RecordError> {
        request.pmu.number()?;
        let (choice, inherit) = (request.options.choice, request.perf_target.inherit);
        if choice == EngineChoice::PerfPmu {
            return match inherit {
                true => Err(UsageError::PmuInherit.into()),
                false => Ok(Self::Pmu),
            };
        }
        match Group::new() {
            Ok(group) => Ok(Self::Tracefs(group)),
            Err(error) if inherit || choice == EngineChoice::PerfTracefs => Err(error),
            Err(_) => Ok(Self::Pmu),
        }
    }

    /// Number of perf events whose removal takes long: of a tracefs event, only the last perf event that is opened on it.
    fn removals(&self, sites: usize, perf_target: &PerfTarget) -> usize {
        match self {
            Self::Tracefs(_) => sites,
            Self::Pmu => sites * perf_target.cpus.len() * perf_target.tids.len(),
        }
    }
}

/// Whether perf events can record what is asked for of a probe.
pub(super) fn check_probe(probe: &PlannedProbe) -> Result<(), RecordError> {
    if let Some(argument) = probe.computed_argument() {
        let (event, argument) = (probe.event(), argument.to_string());
        return Err(UsageError::ComputedArgument { event, argument }.into());
    }
    filter::of_samples(probe, false)?;
    Ok(())
}

/// Whether perf events can record in the way that is asked for.
pub(super) fn check(options: &EngineOptions) -> Result<(), RecordError> {
    if let Some(graph) = options.graph {
        check_callers(graph)?;
    }
    if !options.processes.is_all() {
        return Err(UsageError::NeedsBpf(ProgramFeature::ProcessChoice).into());
    }
    if options.thread_context {
        return Err(UsageError::NeedsBpf(ProgramFeature::ThreadContext).into());
    }
    if options.off_cpu {
        return Err(UsageError::NeedsBpf(ProgramFeature::OffCpu).into());
    }
    if options.nonresident != NonResident::Auto {
        return Err(UsageError::NeedsBpf(ProgramFeature::NonResident).into());
    }
    Ok(())
}

/// Whether perf events can record callers beside what else is asked for.
fn check_callers(graph: CallGraph) -> Result<(), RecordError> {
    if graph.rate.is_some() {
        return Err(UsageError::NeedsBpf(ProgramFeature::StackRate).into());
    }
    // Documentation/admin-guide/sysctl/kernel.rst
    let most = fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let most = most.ok().and_then(|most| most.trim().parse().ok());
    match (graph.method, most) {
        (CallGraphMethod::FramePointers, Some(most)) if graph.frames > most => {
            Err(UsageError::MaxStack { most }.into())
        }
        _ => Ok(()),
    }
}

/// Whether copies of stacks are written.
///
/// # Errors
/// [`UsageError::LimitOfCopies`] if they are written for the arguments of a probe, so that a limit of frames is not kept.
pub(super) fn keeps_copies(
    probes: &[PlannedProbe],
    graph: Option<CallGraph>,
) -> Result<bool, UsageError> {
    let keeps = |probe: &&PlannedProbe| graph.is_some_and(|graph| graph.keeps_copy(&probe.plan));
    let is_limited = |graph: CallGraph| graph.frames != CallGraph::USUAL_FRAMES;
    match probes.iter().find(keeps) {
        Some(probe) if graph.is_some_and(is_limited) => Err(UsageError::LimitOfCopies {
            probe: probe.event(),
        }),
        kept => Ok(kept.is_some()),
    }
}

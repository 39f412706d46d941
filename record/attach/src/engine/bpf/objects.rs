//! What the programs and the recorder share in the kernel: maps and rings.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::features::trials::functions_take_memory;
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::rings::{CpuRings, Sizes};
use usdtrec_kernel::host::kernel_version::tells_processes;
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::super::options::{AttachRequest, GapHold, TaskFilter};
use super::aggregate::group_map::{GroupMaps, MAX_SPAN_BYTES};
use super::aggregate::grouping::{EventNeeds, Grouping};
use super::attach;
use super::attach::site_programs::Maps;
use super::control::Control;
use super::kernel_objects::setup;
use super::processes::executables::Executables;
use super::processes::follow::Tracked;
use super::processes::groups::Groups;
use super::processes::mapping_hold::MappingHold;
use super::processes::watched_files::WatchedFiles;
use super::samples::Samples;
use super::samples::stack_size::create_rates;
use super::spans::planner::memory_for;
use super::spans::span_map::{MAX_BYTES, SpanMaps};
use super::thread_contexts::ThreadContexts;
use super::wait_sums::WaitSums;
use super::wait_sums::events::{EventSettings, WaitEvents};
use crate::callbacks::Caution;
use crate::error::RecordError;

/// The maps and rings of a recording.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) tracked: Tracked,
    /// `None` if processes of all control groups are recorded.
    pub(super) groups: Option<Groups>,
    /// `None` if all executables are recorded.
    pub(super) executables: Option<Executables>,
    /// `None` if no process is held when it maps a file.
    pub(super) mapping_hold: Option<MappingHold>,
    /// What watches who maps files with probes; or why there is nothing. `None` if probes are in chosen processes only, and when it is taken.
    pub(super) watched_files: Option<io::Result<WatchedFiles>>,
    /// The control map of the first part, which has the words of the whole recording.
    pub(super) control: Arc<Control>,
    pub(super) rings: CpuRings,
    /// `None` if thread contexts are not read.
    pub(super) thread_contexts: Option<ThreadContexts>,
    /// `None` if it is not recorded how long threads wait.
    pub(super) wait_sums: Option<WaitSums>,
    /// `None` if hits are not counted by group.
    pub(super) hit_groups: Option<GroupMaps>,
    /// `None` if programs match no spans.
    pub(super) spans: Option<SpanMaps>,
    /// `None` if the rate of stacks is not limited.
    stack_rates: Option<OwnedFd>,
}

impl Objects {
    /// Creates the objects for the sample ids of `samples`, and that of waits.
    pub(super) fn create(
        request: &AttachRequest<'_>,
        ring_bytes: usize,
        kernel: RunningKernel<'_>,
        samples: &Samples,
        waits_id: u64,
    ) -> Result<Self, RecordError> {
        let control = samples.new_control();
        let control = control.map_err(setup("map"))?;
        let AttachRequest {
            options,
            perf_target,
            filter,
            ..
        } = request;
        let sizes = Sizes {
            cpus: &perf_target.cpus,
            bytes: ring_bytes,
        };
        let rings = CpuRings::new(sizes).map_err(setup("ring (Linux 5.8)"))?;
        let can_hold = attach::can_be_apart(request) && kernel.namespace.is_none();
        let is_everywhere = match filter {
            TaskFilter::All => true,
            TaskFilter::Processes(_) => !can_hold,
            TaskFilter::ProcessesAlone(_) | TaskFilter::Threads(_) => !tells_processes(),
        };
        let watched_files =
            (is_everywhere && kernel.namespace.is_none()).then(|| WatchedFiles::new(kernel));
        let tracked = Tracked::new(filter, kernel, &control, can_hold);
        let tracked = tracked.map_err(setup("program that follows processes"))?;
        let (choice, btf) = (&options.processes, kernel.btf);
        let groups = (!choice.groups.is_empty()).then(|| Groups::follow(choice, btf));
        let executables =
            (!choice.executables.is_empty()).then(|| Executables::open(&choice.executables, btf));
        let mapping_hold = mapping_hold(request, &control, &tracked, kernel)?;
        let stack_rates = options.graph.and_then(|graph| graph.rate);
        let stack_rates = stack_rates.map(|_| create_rates()).transpose();
        let thread_contexts = options
            .thread_context
            .then(|| ThreadContexts::new(kernel))
            .transpose();
        let wait_events = options.least_written_wait().map(|least| EventSettings {
            least,
            id: waits_id,
            cpus: &perf_target.cpus,
            control: control.as_fd(),
        });
        let wait_sums = (options.off_cpu)
            .then(|| WaitSums::new(kernel, wait_events))
            .transpose();
        let grouping = match &options.aggregation {
            Some(aggregation) => {
                let needs = EventNeeds::from_events(&samples.groups);
                Grouping::new(aggregation, options.graph, &needs)?
            }
            None => None,
        };
        let has_stacks = grouping
            .as_ref()
            .is_some_and(|grouping| grouping.stacks.is_some());
        if has_stacks && !functions_take_memory(kernel.preemption) {
            return Err(KernelError::NoBpf(BpfRefusal::StackKeys).into());
        }
        let spans = options.slow_spans.as_ref();
        let spans = spans.map(|spans| span_maps(samples, spans.least, grouping.as_ref()));
        let hit_groups = grouping.map(GroupMaps::new).transpose();
        Ok(Self {
            spans: spans.transpose().map_err(setup("map of open spans"))?,
            hit_groups: hit_groups.map_err(setup(
                "map of groups (older kernels allow keys of at most 512 bytes)",
            ))?,
            thread_contexts: thread_contexts.map_err(setup(
                "map of thread contexts, or program that follows processes for it",
            ))?,
            wait_sums: wait_sums.map_err(setup(
                "map of waiting times, or program at sched_switch and sched_waking",
            ))?,
            stack_rates: stack_rates.map_err(setup("map"))?,
            tracked,
            groups: groups.transpose()?,
            executables: executables.transpose()?,
            mapping_hold,
            watched_files,
            control: Arc::new(control),
            rings,
        })
    }

    /// The maps, for programs.
    pub(super) fn maps(&self) -> Maps<'_> {
        let waits = self.wait_sums.as_ref();
        let all = [
            (Map::Rings, Some(self.rings.array())),
            (Map::Control, Some(self.control.as_fd())),
            (Map::FirstControl, Some(self.control.as_fd())),
            (Map::Groups, self.groups.as_ref().map(AsFd::as_fd)),
            (Map::Executables, self.executables.as_ref().map(AsFd::as_fd)),
            (Map::StackRates, self.stack_rates.as_ref().map(AsFd::as_fd)),
            (
                Map::ThreadContexts,
                self.thread_contexts.as_ref().map(AsFd::as_fd),
            ),
            (Map::WaitSums, waits.map(WaitSums::sums)),
            (Map::WaitGate, waits.map(WaitSums::gate)),
        ];
        let all = all.into_iter();
        let all = all.filter_map(|(map, there)| Some((map, there?)));
        let of_groups = self.hit_groups.iter().flat_map(GroupMaps::descriptors);
        let of_spans = self.spans.iter().flat_map(SpanMaps::descriptors);
        Maps {
            tracked: self.tracked.as_fd(),
            others: all.chain(of_groups).chain(of_spans).collect(),
            can_hold: self.tracked.hold.is_some(),
        }
    }

    /// Waits until programs find the rings.
    pub(super) fn wait_until_filled(&mut self) -> io::Result<()> {
        self.rings.wait_until_filled()?;
        let waits = self.wait_events_mut();
        waits.map_or(Ok(()), WaitEvents::wait_until_filled)
    }

    /// The events of waits; `None` if there are none.
    pub(super) fn wait_events(&self) -> Option<&WaitEvents> {
        self.wait_sums.as_ref()?.events.as_ref()
    }

    /// The same, to drain them.
    pub(super) fn wait_events_mut(&mut self) -> Option<&mut WaitEvents> {
        self.wait_sums.as_mut()?.events.as_mut()
    }

    /// Duplicates of the descriptors of the maps.
    pub(super) fn share(&self) -> io::Result<SharedMaps> {
        let Maps {
            tracked,
            mut others,
            ..
        } = self.maps();
        // Each part has its own.
        others.remove(&Map::Control);
        let own = |(map, there): (Map, BorrowedFd<'_>)| Ok((map, there.try_clone_to_owned()?));
        Ok(SharedMaps {
            tracked: tracked.try_clone_to_owned()?,
            others: others.into_iter().map(own).collect::<io::Result<_>>()?,
        })
    }

    /// Holds processes that map files which are not known from now on.
    pub(super) fn begin_holding(&self) {
        self.control.set_holding(self.mapping_hold.is_some());
    }

    /// Holds none any longer.
    pub(super) fn end_holding(&mut self) {
        self.control.set_holding(false);
        if let Some(hold) = &mut self.mapping_hold {
            hold.forget_new();
        }
    }
}

/// What holds processes that map files which are not known; `None` if they need not be held, or the kernel cannot, which is said.
fn mapping_hold(
    request: &AttachRequest<'_>,
    control: &Control,
    tracked: &Tracked,
    kernel: RunningKernel<'_>,
) -> Result<Option<MappingHold>, RecordError> {
    let Some(how) = request.options.no_gap else {
        return Ok(None);
    };
    if kernel.namespace.is_some() {
        return Err(KernelError::NoBpf(BpfRefusal::MappingHoldNamespace).into());
    }
    match MappingHold::new(control, tracked.as_fd(), kernel) {
        Ok(hold) => Ok(Some(hold)),
        Err(error) if how == GapHold::Required => {
            Err(setup("program that holds threads at new mappings")(error))
        }
        Err(error) => {
            (request.say)(&Caution::NotHeld(error));
            Ok(None)
        }
    }
}

/// The maps of the spans that programs match.
fn span_maps(samples: &Samples, least: u64, grouping: Option<&Grouping>) -> io::Result<SpanMaps> {
    let groups = &samples.groups;
    let memory = memory_for(groups, least, grouping);
    let bytes = match grouping {
        Some(_) => MAX_SPAN_BYTES,
        None => MAX_BYTES,
    };
    // Without a span that programs match, records of later parts have no room.
    let may_match = groups.is_empty() || groups.iter().any(|group| group.role.is_some());
    SpanMaps::new(memory, bytes, (!may_match).then_some(1))
}

/// What all parts of a recording share, for a thread that attaches further ones.
#[derive(Debug)]
pub(super) struct SharedMaps {
    tracked: OwnedFd,
    /// The others that there are, but for the control map.
    others: HashMap<Map, OwnedFd>,
}

impl SharedMaps {
    /// The maps for the programs of a part. No process is held until they are attached to it.
    pub(super) fn with_control<'a>(&'a self, control: BorrowedFd<'a>) -> Maps<'a> {
        let others = self.others.iter();
        let others = others.map(|(map, there)| (*map, there.as_fd()));
        Maps {
            tracked: self.tracked.as_fd(),
            others: others.chain([(Map::Control, control)]).collect(),
            can_hold: false,
        }
    }
}

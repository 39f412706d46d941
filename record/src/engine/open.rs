//! Opening what a recording needs in the kernel, with the first engine that works.

use std::fs;
use std::io;

use super::attached::{Attached, Planted, Way};
use super::bpf::{AttachMethod, Bpf, BpfOptions, NonResident, OpenBpf};
use super::choice::Engine;
use super::event::{Event, KernelAttr, Mode};
use super::group::Group;
use super::inexact::InexactCounts;
use super::options::AttachOptions;
use super::pmu::UprobePmu;
use super::processes::Processes;
use super::refusal::refusal;
use super::rings::Rings;
use super::samples;
use super::watch::Watch;
use crate::engine::task_filter::TaskFilter;
use crate::error::RecordError;
use crate::error::TargetError;
use crate::filter;
use crate::plan::call_graph::{CallGraph, CallGraphMethod};
use crate::probe::{PlannedProbe, RefusedProbe};
use crate::usage_error::{ProgramFeature, UsageError};

/// Default size of each ring of the programs, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const DEFAULT_RING: usize = 8 << 20;
const LEAST_DEFAULT_RING: usize = 1 << 20;
const DEFAULT_RINGS: usize = 64 << 20;
/// Maximum size of all rings of the programs, bytes.
const MAX_RINGS: usize = 1 << 30;

impl Attached {
    /// Opens everything, disabled, with the first engine that works.
    pub(crate) fn open(
        probes: Vec<PlannedProbe>,
        options: &AttachOptions<'_>,
    ) -> Result<Self, RecordError> {
        let pmu = UprobePmu::find();
        let attach_methods = options.engine.bpf_attach_methods();
        let mut passed_over = None;
        if !attach_methods.is_empty() {
            match Self::open_bpf(&probes, options, attach_methods, pmu) {
                Ok(attached) => return Ok(attached),
                Err(error @ (RecordError::Usage(_) | RecordError::Interrupted(_))) => {
                    return Err(error);
                }
                Err(error)
                    if options.engine == Engine::Auto
                        && !options.lossless
                        && options.nonresident == NonResident::Auto =>
                {
                    passed_over = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        check_for_perf(&probes, options)?;
        match (Self::open_perf(probes, options, pmu), passed_over) {
            (Ok(mut attached), bpf) => {
                attached.passed_over = bpf;
                Ok(attached)
            }
            (
                Err(
                    perf @ (RecordError::Kernel { .. }
                    | RecordError::Attach { .. }
                    | RecordError::NoTracefs(_)),
                ),
                Some(bpf),
            ) => Err(RecordError::NoEngine {
                bpf: Box::new(bpf),
                perf: Box::new(perf),
            }),
            (Err(error), _) => Err(error),
        }
    }

    fn open_bpf(
        probes: &[PlannedProbe],
        options: &AttachOptions<'_>,
        attach_methods: &[AttachMethod],
        pmu: UprobePmu,
    ) -> Result<Self, RecordError> {
        let keeps = options.graph.is_some_and(|graph| graph.keeps_copies);
        let mut attached = Self::empty(options, pmu, keeps)?;
        let cpus = &options.watch.cpus;
        let bytes = ring_bytes(options.ring_bytes, cpus.len());
        let metadata = &attached.processes.attr;
        let largest = metadata.ids.iter().max();
        let OpenBpf { mut bpf, refused } = Bpf::open(
            probes,
            &BpfOptions {
                attach_methods,
                filter: options.filter.clone(),
                cpus,
                some_cpus: options.some_cpus,
                ring_bytes: bytes,
                strings: options.strings,
                graph: options.graph,
                nonresident: options.nonresident,
                lossless: options.lossless,
                first_id: largest.map_or(1, |id| id + 1),
                metadata: &metadata.attr,
                pmu,
                planting: options.planting,
            },
        )?;
        attached.ring_bytes = bpf.ring_bytes();
        attached.wanted_ring_bytes = bytes;
        attached.refused = refused;
        attached.planted = bpf
            .take_attrs()
            .into_iter()
            .map(|attr| Planted {
                events: Vec::new(),
                places: Vec::new(),
                site_ids: attr.ids.iter().map(|id| vec![*id]).collect(),
                attr,
            })
            .collect();
        attached.probes = bpf.probes().cloned().collect();
        attached.way = Way::Bpf(Box::new(bpf));
        Ok(attached)
    }

    fn open_perf(
        probes: Vec<PlannedProbe>,
        options: &AttachOptions<'_>,
        pmu: UprobePmu,
    ) -> Result<Self, RecordError> {
        pmu.number()?;
        let watch = &options.watch;
        // Events of the uprobe PMU count wrong on several CPUs, so they are the last resort.
        let by_tracefs = match options.engine {
            Engine::PerfPmu if watch.inherit => {
                return Err(UsageError::PmuInherit.into());
            }
            Engine::PerfPmu => false,
            _ => true,
        };
        let group = by_tracefs.then(Group::new);
        let group = match group {
            Some(Err(error)) if watch.inherit || options.engine == Engine::PerfTracefs => {
                return Err(error);
            }
            group => group.and_then(Result::ok),
        };
        let probes = samples::split(probes, options.stack);
        let keeps = |probe: &PlannedProbe| {
            let graph = probe.graph(options.graph);
            graph.is_some_and(|graph| graph.keeps_copy(&probe.plan))
        };
        let kept = probes.iter().find(|probe| keeps(probe));
        check_limit(options.graph, kept)?;
        let mut attached = Self::empty(options, pmu, kept.is_some())?;
        if let Some(group) = group {
            attached.way = Way::Tracefs(group);
        }
        let mode = attached.mode;
        attached.inexact = inexact(&attached.way, mode, options);
        let rings = Rings::map(mode, &watch.cpus, options.ring_bytes)?;
        attached.ring_bytes = rings.bytes();
        attached.wanted_ring_bytes = rings.bytes();
        let sites = probes.iter().map(|probe| probe.sites.len()).sum();
        options
            .planting
            .announce(removals(sites, &attached.way, watch));
        for probe in probes {
            match attached.plant(&probe, options, &rings) {
                Ok(planted) => {
                    attached.planted.push(planted);
                    attached.probes.push(probe);
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) => attached.refused.push(RefusedProbe { probe, error }),
            }
        }
        attached.rings = Some(rings);
        Ok(attached)
    }

    /// The events of process records, without probes. `keeps` is whether copies of stacks are written.
    fn empty(
        options: &AttachOptions<'_>,
        pmu: UprobePmu,
        keeps: bool,
    ) -> Result<Self, RecordError> {
        let watch = &options.watch;
        let mode = Mode {
            maps_data: keeps,
            graph: options.graph,
            ..supported(watch)?
        };
        Ok(Self {
            processes: Processes::open(mode, watch)?,
            rings: None,
            probes: Vec::new(),
            planted: Vec::new(),
            way: Way::Pmu,
            refused: Vec::new(),
            passed_over: None,
            inexact: None,
            pmu,
            ring_bytes: 0,
            wanted_ring_bytes: 0,
            mode,
            watches_cpus: watch.tids == [-1],
        })
    }
}

/// Whether perf events can record what is asked for.
fn check_for_perf(probes: &[PlannedProbe], options: &AttachOptions<'_>) -> Result<(), RecordError> {
    for probe in probes {
        if let Some(argument) = probe.computed_argument() {
            let (event, argument) = (probe.event(), argument.to_string());
            return Err(UsageError::ComputedArgument { event, argument }.into());
        }
        filter::of_samples(probe)?;
    }
    if let Some(graph) = options.graph {
        check_callers(graph)?;
    }
    if options.lossless {
        return Err(UsageError::NeedsBpf(ProgramFeature::Lossless).into());
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

/// Whether the limit of frames is kept, if the copies of the stacks of a probe are written for its arguments.
fn check_limit(graph: Option<CallGraph>, kept: Option<&PlannedProbe>) -> Result<(), UsageError> {
    let is_limited =
        |graph: CallGraph| !graph.keeps_copies && graph.frames != CallGraph::USUAL_FRAMES;
    match kept {
        Some(probe) if graph.is_some_and(is_limited) => Err(UsageError::LimitOfCopies {
            probe: probe.event(),
        }),
        _ => Ok(()),
    }
}

/// Size of each ring of the programs, bytes, a power of two.
fn ring_bytes(asked: Option<usize>, cpus: usize) -> usize {
    let cpus = cpus.max(1);
    let bytes = asked.unwrap_or((DEFAULT_RINGS / cpus).clamp(LEAST_DEFAULT_RING, DEFAULT_RING));
    let bytes = bytes.min(MAX_RINGS / cpus).max(rustix::param::page_size());
    1 << bytes.ilog2()
}

/// Why perf events may miss hits or count them twice without reporting it.
fn inexact(way: &Way, mode: Mode, options: &AttachOptions<'_>) -> Option<InexactCounts> {
    let watch = &options.watch;
    match way {
        _ if matches!(options.filter, TaskFilter::ProcessesAlone(_)) => {
            Some(InexactCounts::NotInherited)
        }
        // A tracefs event is one consumer of a site, however many perf events are opened on it.
        Way::Tracefs(_) if watch.inherit => Some(InexactCounts::Inherited),
        // Each PMU event is a consumer of its own. They run one after the other, and each compares its CPU with the current one.
        Way::Pmu if watch.cpus.len() > 1 => Some(InexactCounts::PmuOnSeveralCpus),
        _ if !mode.counts_losses => Some(InexactCounts::LossesNotCounted),
        _ => None,
    }
}

/// The settings of events that this kernel supports, found by trying.
fn supported(watch: &Watch) -> Result<Mode, RecordError> {
    let mode = Mode {
        inherit: watch.inherit,
        enable_on_exec: watch.enable_on_exec,
        maps_data: false,
        graph: None,
        counts_losses: true,
    };
    let &[cpu, ..] = watch.cpus.as_slice() else {
        return Err(TargetError::NoCpu.into());
    };
    for mode in [
        mode,
        Mode {
            counts_losses: false,
            ..mode
        },
    ] {
        match Event::open(&KernelAttr::ring_owner(mode, 1), -1, cpu) {
            Ok(_) => return Ok(mode),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(refusal(error)),
        }
    }
    Err(refusal(io::Error::from_raw_os_error(libc::EINVAL)))
}

/// Number of perf events whose removal takes long: of a tracefs event, only the last perf event that is opened on it.
fn removals(sites: usize, way: &Way, watch: &Watch) -> usize {
    match way {
        Way::Tracefs(_) => sites,
        _ => sites * watch.cpus.len() * watch.tids.len(),
    }
}

//! Attaching all probes: the objects in the kernel, the programs, and the processes that are followed.
//!
//! Plans all probes but those that cannot be planned, or whose events no trace can have, because of what their file is.
//!
//! What is wrong with a file that any user's process maps is no error of the recording. An error about a file that the user named is one, unless it is
//! about the trace.

use std::sync::Arc;

use usdtrec_format::perf::{Attr, EventAttr, TracepointFormat};
use usdtrec_format::trace::Limit;
use usdtrec_format::{Arch, Btf};
use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::features::members::IdMembers;
use usdtrec_kernel::bpf::features::members::PidNamespace;
use usdtrec_kernel::bpf::features::trials::{functions_take_memory, loads_ids};
use usdtrec_kernel::bpf::preemption::Preemption;
use usdtrec_kernel::bpf::rings::ring_bytes;
use usdtrec_kernel::bpf::sys::btf_from_sysfs;
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::super::options::{AttachRequest, EngineOptions, NonResident};
use super::super::outcome::NotFaultedIn;
use super::super::outcome::{Opened, ProbeAttr};
use super::attach::Attaching;
use super::attach::attacher::AttachedSites;
use super::attach::site_programs::{BadSite, Site};
use super::attach::unit_links::Attachment;
use super::bpf_engine::BpfEngine;
use super::kernel_objects::setup;
use super::nonresident::Touch;
use super::objects::Objects;
use super::part::{Part, Parts};
use super::plan::{self, Group, Ids, PlanRequest};
use super::processes::children::Children;
use super::processes::executables::Executables;
use super::processes::follow;
use super::program::spec::{Common, CpuRange, Spec, ThreadBase};
use super::samples::Samples;
use super::spans::arguments::SpanArguments;
use super::spans::entry::SpanMemory;
use super::spans::filters::with_own_filters;
use super::spans::plan_spans::plan_spans;
use crate::aggregation::AggregatedProbes;
use crate::budget::Units;
use crate::error::{RecordError, UsageError, with_source};
use crate::plan::call_graph::CallGraph;
use crate::select::probe::{PlannedProbe, RefusedProbe};
use crate::select::refusal::RefusalReason;

impl BpfEngine {
    /// Attaches all probes, disabled; there may be none yet. Sites that were not attached to are refused, each as a probe. They stay among the definitions,
    /// without hits. `metadata` is the attr of the session's other events.
    pub fn open(
        probes: &[PlannedProbe],
        request: &AttachRequest<'_>,
        metadata: &EventAttr,
    ) -> Result<Opened<Self>, RecordError> {
        let options = request.options;
        let btf = btf_from_sysfs();
        let kernel = running_kernel(btf.as_ref())?;
        let thread_base = thread_base(btf.as_ref());
        let first_id = metadata.ids.iter().max().map_or(1, |id| id + 1);
        // The event of waits has an id, too.
        let has_waits = options.least_written_wait().is_some();
        let ids = Ids::first(first_id + u64::from(has_waits));
        let has_thread = thread_base.is_some();
        if options.thread_context && !has_thread {
            return Err(KernelError::NoBpf(BpfRefusal::ThreadPointer).into());
        }
        let request_of_plan = PlanRequest {
            probes,
            options,
            has_thread,
            first_type: ids.event,
            may_wait: request.may_wait,
        };
        let Fitting {
            groups,
            refused: unfit,
        } = Fitting::plan(&request_of_plan, None)?.aggregated(&request_of_plan)?;
        let samples = Samples::new(groups, ids, options);
        let cpus = request.perf_target.cpus.len();
        let has_copies = options.graph.is_some_and(CallGraph::unwinds);
        let wanted_ring_bytes = ring_bytes(options.ring_bytes, cpus, has_copies);
        let mut objects = Objects::create(request, wanted_ring_bytes, kernel, &samples, first_id)?;
        samples.set_stack_sizes(&objects.control);
        let common = common(request, &objects, kernel, thread_base);
        let attaching = Attaching {
            sites: &sites(&samples.groups, units(&samples, options).as_ref()),
            common: with_ids(&common, &samples),
            maps: objects.maps(),
            request,
        };
        let AttachedSites {
            mut attachment,
            bad,
        } = if samples.groups.is_empty() {
            attaching.nothing()?
        } else {
            attaching.run()?
        };
        let filled = objects.wait_until_filled();
        filled.map_err(setup("ring (Linux 5.8)"))?;
        if common.touch == Touch::Never && options.nonresident == NonResident::Auto {
            attachment.not_faulted_in = Some(NotFaultedIn::NoBtf);
        }
        let children = follow_children(&mut objects, &mut attachment)?;
        let (probes, attrs) = described(&samples, &metadata.attr);
        Ok(Opened {
            probes,
            attrs,
            refused: refused(&samples, bad, unfit),
            engine: Self {
                children,
                in_namespace: kernel.namespace.is_some(),
                parts: Parts::new(Part {
                    attachment,
                    control: Arc::clone(&objects.control),
                    samples,
                    probes_before: 0,
                    is_detached: false,
                }),
                objects,
                common,
                wanted_ring_bytes,
                batch: Vec::new(),
                releases: Vec::new(),
            },
        })
    }
}

/// The probes of the samples, and their attrs.
pub(super) fn described(
    samples: &Samples,
    metadata: &Attr,
) -> (Vec<Arc<PlannedProbe>>, Vec<ProbeAttr>) {
    let probes = samples.groups.iter().map(|group| Arc::clone(&group.probe));
    let attrs = samples.attrs(metadata).into_iter().map(|attr| ProbeAttr {
        site_ids: attr.ids.iter().map(|id| vec![*id]).collect(),
        attr,
    });
    (probes.collect(), attrs.collect())
}

/// Sites that were not attached to, each as a probe, and after them probes that were not planned.
pub(super) fn refused(
    samples: &Samples,
    bad: Vec<BadSite>,
    unfit: Vec<RefusedProbe>,
) -> Vec<RefusedProbe> {
    let refused = bad.into_iter().filter_map(|BadSite { site, error }| {
        let group = samples.group_of(site)?;
        Some(RefusedProbe {
            probe: PlannedProbe::clone(&group.probe),
            error,
        })
    });
    refused.chain(unfit).collect()
}

/// What programs need to know of the running kernel.
fn running_kernel(btf: Option<&Btf>) -> Result<RunningKernel<'_>, KernelError> {
    let namespace = PidNamespace::own(btf);
    Ok(RunningKernel {
        btf,
        preemption: Preemption::from_btf(btf)?,
        namespace: namespace.map_err(|_| KernelError::NoBpf(BpfRefusal::PidNamespace))?,
    })
}

/// Checks that the keys and the measured arguments are arguments of planned probes.
fn check_aggregation(options: &EngineOptions, groups: &[Group]) -> Result<(), UsageError> {
    let Some(aggregation) = &options.aggregation else {
        return Ok(());
    };
    let mut probes = AggregatedProbes::default();
    for group in groups {
        let of = match &group.role {
            None => &mut probes.of_no_span,
            Some(role) if role.begins => &mut probes.begins,
            Some(_) => &mut probes.ends,
        };
        of.push(&*group.probe);
    }
    aggregation.check(&probes)
}

/// Follows the children of the recorded processes, if these have links of their own.
fn follow_children(
    objects: &mut Objects,
    attachment: &mut Attachment,
) -> Result<Option<Children>, RecordError> {
    let Some(later) = attachment.later.take() else {
        return Ok(None);
    };
    match objects.tracked.hold.take() {
        Some(hold) => {
            let children = Children::follow(hold, later, &objects.control);
            Ok(Some(
                children.map_err(setup("thread that attaches to children"))?,
            ))
        }
        None => Ok(None),
    }
}

/// What programs of a recording have in common.
fn common(
    request: &AttachRequest<'_>,
    objects: &Objects,
    kernel: RunningKernel<'_>,
    thread_base: Option<ThreadBase>,
) -> Common {
    Common {
        touch: Touch::new(request.options.nonresident, kernel.btf),
        thread_base,
        preemption: kernel.preemption,
        namespace: kernel.namespace,
        id_members: id_members(kernel, kernel.preemption),
        functions_take_memory: functions_take_memory(kernel.preemption),
        cpus: (request.options.cpus.is_some())
            .then(|| CpuRange::from_cpus(&request.perf_target.cpus)),
        recorded: follow::recorded_processes(&request.filter),
        in_groups: objects.groups.is_some(),
        executables: objects.executables.as_ref().map(Executables::members),
        grouping: objects
            .hit_groups
            .as_ref()
            .map(|maps| maps.grouping.clone()),
        spans: objects.spans.as_ref().map(|maps| maps.memory),
        ring_bytes: objects.rings.bytes() as u32,
        recorder: Some(std::process::id()),
        ..Common::default()
    }
}

/// The same for the programs of these samples.
pub(super) fn with_ids(common: &Common, samples: &Samples) -> Common {
    Common {
        first_id: samples.first_id(),
        ids: samples.ids() as u32,
        strings: samples.strings() as u32,
        hit_counts: samples.hit_counts(),
        ..common.clone()
    }
}

/// Where the kernel keeps the base of thread-local storage; `None` if it does not describe its structures.
fn thread_base(btf: Option<&Btf>) -> Option<ThreadBase> {
    let member = |names: &[&str]| btf?.member("task_struct", names);
    match Arch::host()? {
        Arch::X86_64 => Some(ThreadBase {
            pointer: member(&["thread", "fsbase"])?,
            descriptors: Some(member(&["thread", "tls_array"])?),
        }),
        Arch::Aarch64 => Some(ThreadBase {
            pointer: member(&["thread", "uw", "tp_value"])?,
            descriptors: None,
        }),
        _ => None,
    }
}

/// Where programs find the ids and the user of a task; `None` if helpers have to give them: the ids of a pid namespace are not in the task itself.
fn id_members(kernel: RunningKernel<'_>, preemption: Option<Preemption>) -> Option<IdMembers> {
    let btf = kernel.btf.filter(|_| kernel.namespace.is_none());
    btf.and_then(IdMembers::find)
        .filter(|members| loads_ids(*members, preemption))
}

/// Which events are detached together; `None` if none are.
fn units(samples: &Samples, options: &EngineOptions) -> Option<Units> {
    options.budget.as_ref()?;
    let probes = samples.groups.iter().map(|group| &*group.probe);
    Some(Units::of_probes(probes))
}

/// All sites, in the order of their sample ids.
pub(super) fn sites<'a>(groups: &'a [Group], units: Option<&Units>) -> Vec<Site<'a>> {
    let of_group = groups.iter().enumerate().flat_map(|(event, group)| {
        let sites = group.probe.sites.iter().zip(&group.plans);
        let unit = units.and_then(|units| units.unit(event));
        sites.map(move |(site, plan)| (group, site, plan, unit))
    });
    of_group
        .map(|(group, site, plan, unit)| Site {
            unit,
            probe: &group.probe,
            site: &site.site,
            spec: Spec {
                arch: group.arch(),
                captures: &plan.captures,
                layout: &group.layout,
                measured: &group.measured,
                graph: group.graph,
                return_address: plan.return_address,
                condition: plan.condition.as_ref(),
                role: group.role.as_ref(),
                cookie: None,
            },
        })
        .collect()
}

/// Maximum size of the format of an event for stock perf, bytes: with it, the next event can be added to the trace
/// ([`Limit::Format`]).
const MAX_FORMAT: usize = Limit::Format.max() as usize;

/// Planned events, and the probes that were left out.
#[derive(Debug)]
pub(super) struct Fitting {
    pub(super) groups: Vec<Group>,
    pub(super) refused: Vec<RefusedProbe>,
}

impl Fitting {
    /// Plans the events of all probes; `memory` as in [`plan_spans`].
    ///
    /// # Errors
    /// The errors of [`plan_spans`], for probes of files that the user named, or if nothing is left, unless all is of other users' files and more is waited for.
    pub(super) fn plan(
        request: &PlanRequest<'_>,
        memory: Option<SpanMemory>,
    ) -> Result<Self, RecordError> {
        let spans = request.options.slow_spans.as_ref();
        let spans = spans.filter(|_| request.options.aggregation.is_none());
        let filtered = spans.map(|spans| with_own_filters(request.probes, spans));
        let request = &PlanRequest {
            probes: filtered.as_deref().unwrap_or(request.probes),
            ..*request
        };
        let planned = plan_spans(request, memory);
        if let Ok(groups) = &planned
            && groups.iter().all(|group| too_long(group).is_none())
        {
            let refused = Vec::new();
            return planned.map(|groups| Self { groups, refused });
        }
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for probe in request.probes {
            match fault(request, probe)? {
                None => kept.push(probe.clone()),
                Some(probe) => refused.push(probe),
            }
        }
        let is_passed_over = request.may_wait
            && refused
                .iter()
                .all(|refused| refused.probe.is_of_another_user());
        if let Some(first) = refused.pop_if(|_| kept.is_empty() && !is_passed_over) {
            return Err(first.error);
        }
        let request = PlanRequest {
            probes: &kept,
            ..*request
        };
        let groups = match plan_spans(&request, memory) {
            Err(error @ RecordError::Usage(UsageError::FilterNeverTrue)) => {
                refused.extend(all_unfit(&request, kept.iter(), error)?);
                Vec::new()
            }
            planned => planned?,
        };
        Ok(Self { groups, refused })
    }

    /// The same, if it has what is aggregated.
    ///
    /// # Errors
    /// As [`all_unfit`].
    fn aggregated(mut self, request: &PlanRequest<'_>) -> Result<Self, RecordError> {
        if let Err(error) = check_aggregation(request.options, &self.groups) {
            let planned = self.groups.iter().map(|group| &*group.probe);
            let unfit = all_unfit(request, planned, error.into())?;
            self.groups.clear();
            self.refused.extend(unfit);
        }
        Ok(self)
    }
}

/// The refusals of all probes for an error about all of them.
///
/// # Errors
/// The error, if one of them is not of another user's file, or nothing is waited for.
fn all_unfit<'p>(
    request: &PlanRequest<'_>,
    probes: impl Iterator<Item = &'p PlannedProbe> + Clone,
    error: RecordError,
) -> Result<Vec<RefusedProbe>, RecordError> {
    if !request.may_wait || !probes.clone().all(PlannedProbe::is_of_another_user) {
        return Err(error);
    }
    let reason = RefusalReason::Unfit(with_source(&error));
    let refused = probes.map(|probe| RefusedProbe {
        error: probe.refused(reason.clone()),
        probe: probe.clone(),
    });
    Ok(refused.collect())
}

/// Why a probe is left out.
///
/// # Errors
/// The errors of [`plan::group`], for probes of files that the user named.
fn fault(
    request: &PlanRequest<'_>,
    probe: &PlannedProbe,
) -> Result<Option<RefusedProbe>, RecordError> {
    let request = PlanRequest {
        probes: std::slice::from_ref(probe),
        ..*request
    };
    match plan::group(&request, &SpanArguments::None) {
        Ok(groups) => Ok(groups.iter().find_map(too_long).map(|reason| RefusedProbe {
            error: probe.refused(reason),
            probe: probe.clone(),
        })),
        Err(RecordError::Usage(UsageError::FilterNeverTrue)) => Ok(None),
        Err(error) => probe.refused_for(error).map(Some),
    }
}

/// Why the format of an event does not fit into a trace.
fn too_long(group: &Group) -> Option<RefusalReason> {
    let bytes = bytes(&group.format());
    (bytes > MAX_FORMAT).then_some(RefusalReason::LongFormat {
        bytes,
        most: MAX_FORMAT,
    })
}

/// Size of a format as it is written, bytes, or more.
fn bytes(format: &TracepointFormat) -> usize {
    /// What is written of each field beside its declaration; the common fields, the name of a system and what else is always there.
    const OF_FIELD: usize = 64;
    const OTHERS: usize = 1024;
    let fields = format.fields.iter();
    let fields: usize = fields.map(|field| field.declaration.len() + OF_FIELD).sum();
    let arguments = format.print_arguments.iter();
    let arguments: usize = arguments.map(|argument| argument.len() + 2).sum();
    let names = format.name.len() + format.system.len();
    OTHERS + names + fields + format.print.len() + arguments
}

#[cfg(test)]
mod tests {
    use usdtrec_format::expr::{Capture, Expr};

    use super::*;
    use crate::chosen::ProcessChoice;
    use crate::engine::options::EngineChoice;
    use crate::plan::layout::Strings;
    use crate::select::probe::made_up;

    fn options() -> EngineOptions {
        EngineOptions {
            choice: EngineChoice::Bpf,
            cpus: None,
            ring_bytes: None,
            strings: Strings {
                limit: 0,
                known: false,
            },
            graph: None,
            nonresident: NonResident::Auto,
            no_gap: None,
            processes: ProcessChoice::default(),
            aggregation: None,
            slow_spans: None,
            budget: None,
            thread_context: false,
            off_cpu: false,
            least_wait: None,
        }
    }

    /// A file that is found, and does not have what is asked for, ends no recording that may wait.
    #[test]
    fn found_probes_that_cannot_be_planned_are_refused() {
        if Arch::host() != Some(Arch::X86_64) {
            return;
        }
        let Some(program) = made_up::program_of_another() else {
            return;
        };
        let probe = made_up::probe("req", "8@$4", &program);
        let unfit = [
            PlannedProbe {
                list: Some(Capture::parse_list("next=user+1").unwrap()),
                ..probe.clone()
            },
            PlannedProbe {
                filter: Some(Expr::parse("user == 1").unwrap()),
                ..probe.clone()
            },
            PlannedProbe {
                filter: Some(Expr::parse("arg1 == 5").unwrap()),
                ..probe
            },
        ];
        let options = options();
        for probe in unfit {
            let plan = |may_wait, probe: &PlannedProbe| {
                let request = PlanRequest {
                    probes: std::slice::from_ref(probe),
                    options: &options,
                    has_thread: true,
                    first_type: 10_001,
                    may_wait,
                };
                let planned = Fitting::plan(&request, None).ok()?;
                Some((planned.groups.len(), planned.refused.len()))
            };
            assert_eq!(plan(true, &probe), Some((0, 1)), "{probe:?}");
            assert_eq!(plan(false, &probe), None);
            let named = PlannedProbe {
                is_found: false,
                ..probe
            };
            assert_eq!(plan(true, &named), None);
        }
    }
}

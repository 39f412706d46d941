//! Attaching all probes: the objects in the kernel, the programs, and the processes that are followed.

use usdtrec_format::perf::EventAttr;

use super::super::opened::{Opened, ProbeAttr};
use super::super::options::AttachRequest;
use super::attach::Attaching;
use super::attach::attacher::{AttachedSites, BadSite};
use super::attach::site_programs::Site;
use super::kernel::RunningKernel;
use super::kernel::btf::Btf;
use super::kernel::pid_namespace::PidNamespace;
use super::kernel::trials::functions_take_memory;
use super::nonresident::Touch;
use super::objects::Objects;
use super::plan::{self, Group};
use super::preemption::Preemption;
use super::processes::children::Children;
use super::processes::executables::Executables;
use super::processes::follow;
use super::program::{Common, CpuRange, Spec, Stop, ThreadBase};
use super::rings::ring_size::ring_bytes;
use super::samples::Samples;
use super::setup::setup;
use super::{BpfEngine, NonResident, NotFaultedIn};
use crate::error::RecordError;
use crate::kernel_error::{BpfObject, BpfRefusal};
use crate::select::probe::{PlannedProbe, RefusedProbe};

impl BpfEngine {
    /// Attaches all probes, disabled. Sites that were not attached to are refused, each as a probe. They stay among the definitions,
    /// without hits. `metadata` is the attr of the session's other events.
    pub(crate) fn open(
        probes: &[PlannedProbe],
        request: &AttachRequest<'_>,
        metadata: &EventAttr,
    ) -> Result<Opened<Self>, RecordError> {
        let options = request.options;
        let btf = Btf::read();
        let preemption = Preemption::from_btf(btf.as_ref())?;
        let namespace = PidNamespace::own(btf.as_ref());
        let kernel = RunningKernel {
            btf: btf.as_ref(),
            preemption,
            namespace: namespace.map_err(|_| RecordError::NoBpf(BpfRefusal::PidNamespace))?,
        };
        let thread_base = thread_base(btf.as_ref());
        let has_thread = thread_base.is_some();
        let groups = plan::group(probes, options.strings, has_thread, options.graph)?;
        let first_id = metadata.ids.iter().max().map_or(1, |id| id + 1);
        let samples = Samples::new(groups, first_id);
        let wanted_ring_bytes = ring_bytes(options.ring_bytes, request.watch.cpus.len());
        let mut objects = Objects::create(request, wanted_ring_bytes, kernel, &samples)?;
        samples.set_stack_sizes(&objects.control);
        let touch = Touch::new(options.nonresident, btf.as_ref());
        let common = Common {
            touch,
            thread_base,
            preemption,
            namespace: kernel.namespace,
            functions_take_memory: functions_take_memory(preemption),
            first_id,
            ..common(request, &objects, &samples)
        };
        let attaching = Attaching {
            sites: &sites(&samples.groups),
            common,
            maps: objects.maps(),
            request,
        };
        let AttachedSites {
            mut attachment,
            bad,
        } = attaching.run()?;
        let filled = objects.rings.wait_until_filled();
        filled.map_err(setup(BpfObject::Rings))?;
        if touch == Touch::Never && options.nonresident == NonResident::Auto {
            attachment.not_faulted_in = Some(NotFaultedIn::NoBtf);
        }
        let children = match (objects.tracked.hold.take(), attachment.later.take()) {
            (Some(hold), Some(later)) => {
                let children = Children::follow(hold, later, &objects.control);
                Some(children.map_err(setup(BpfObject::Children))?)
            }
            (hold, _) => {
                objects.tracked.hold = hold;
                None
            }
        };
        let attrs = samples.attrs(&metadata.attr).into_iter();
        let attrs = attrs.map(|attr| ProbeAttr {
            site_ids: attr.ids.iter().map(|id| vec![*id]).collect(),
            attr,
        });
        let groups = samples.groups.iter();
        Ok(Opened {
            probes: groups.map(|group| group.probe.clone()).collect(),
            attrs: attrs.collect(),
            refused: bad
                .into_iter()
                .filter_map(|bad| refused(&samples, bad))
                .collect(),
            engine: Self {
                children,
                in_namespace: kernel.namespace.is_some(),
                attachment,
                objects,
                samples,
                wanted_ring_bytes,
                batch: Vec::new(),
            },
        })
    }
}

/// A site that was not attached to, as a probe.
fn refused(samples: &Samples, BadSite { site, error }: BadSite) -> Option<RefusedProbe> {
    let group = samples.group_of(site)?;
    Some(RefusedProbe {
        probe: group.probe.clone(),
        error,
    })
}

/// What programs of a recording have in common, but for what the kernel's structures decide.
fn common(request: &AttachRequest<'_>, objects: &Objects, samples: &Samples) -> Common {
    Common {
        cpus: (request.options.cpus.is_some()).then(|| CpuRange::from_cpus(&request.watch.cpus)),
        who: follow::who(&request.filter),
        in_groups: objects.groups.is_some(),
        executables: objects.executables.as_ref().map(Executables::members),
        ids: samples.ids() as u32,
        strings: samples.strings() as u32,
        ring_bytes: objects.rings.bytes() as u32,
        stop: objects.stopped.as_ref().map(|_| Stop {
            at: (objects.rings.bytes() / 2) as u32,
        }),
        ..Common::default()
    }
}

/// Where the kernel keeps the base of thread-local storage; `None` if it does not describe its structures.
fn thread_base(btf: Option<&Btf>) -> Option<ThreadBase> {
    let member = |name| btf?.member("task_struct", &["thread", name]);
    Some(ThreadBase {
        fs: member("fsbase")?,
        descriptors: member("tls_array")?,
    })
}

/// All sites, in the order of their sample ids.
fn sites(groups: &[Group]) -> Vec<Site<'_>> {
    let of_group = groups.iter().flat_map(|group| {
        let sites = group.probe.sites.iter().zip(&group.plans);
        sites.map(move |(site, plan)| (group, site, plan))
    });
    of_group
        .map(|(group, site, plan)| Site {
            probe: &group.probe,
            site: &site.site,
            spec: Spec {
                arch: group.arch(),
                captures: &plan.captures,
                layout: &group.layout,
                graph: group.graph,
                return_address: plan.return_address,
                condition: plan.condition.as_ref(),
                cookie: None,
            },
        })
        .collect()
}

//! Attaching a probe with perf events: one for each site, traced thread and CPU.
//!
//! Capture plans of perf events: sites that share an attr need the same registers and the same number of stack bytes.
//!
//! An attr is a probe with one capture plan. The sites of a probe often have different operands. A probe whose sites
//! need different registers or stack sizes has several attrs with one name, and the sample id identifies the site.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use usdtrec_format::perf::EventAttr;
use usdtrec_kernel::separate_process::planting;

use super::super::events::event::{
    Event, KernelAttr, Mode, SiteEvent, has_ended, meaning, refusal, site_meaning,
};
use super::super::events::rings::Rings;
use super::super::options::{AttachRequest, PerfTarget, TaskFilter};
use super::super::outcome::InexactCounts;
use super::super::outcome::{Opened, ProbeAttr};
use super::super::release::{Descriptors, Release};
use super::{PerfEngine, PerfMethod, ProbeEvents, SiteEvents};
use crate::error::{Interruption, RecordError};
use crate::plan::plan;
use crate::select::probe::{PlannedProbe, RefusedProbe, SiteOffsets};
use crate::select::program::CurrentProgram;
use crate::select::refusal::RefusalReason;

impl PerfEngine {
    /// Opens the events of one probe.
    pub(super) fn attach(
        &mut self,
        probe: &PlannedProbe,
        request: &AttachRequest<'_>,
    ) -> Result<ProbeAttr, RecordError> {
        let path = probe.file().kernel_path();
        let mut sites: Vec<Vec<Event>> = Vec::new();
        let mut places = Vec::new();
        let mut for_trace = None;
        for site in &probe.sites {
            if request.end_signal.has_arrived() {
                let mut descriptors = self.take_descriptors();
                let events = sites.into_iter().flatten();
                descriptors.events.extend(events.map(OwnedFd::from));
                return Err(Release::start(descriptors).interrupted());
            }
            let offsets = probe.offsets(&site.site)?;
            let offset = offsets.offset;
            let refused = |source: io::Error| RecordError::Attach {
                event: probe.event(),
                path: probe.path.clone(),
                offset,
                meaning: site_meaning(&source, &site.site).or_else(|| meaning(&source)),
                source,
            };
            let place = match self.traced_event(probe, offsets) {
                Some(id) => SiteEvent::Tracepoint(id.map_err(refused)?),
                None => SiteEvent::Uprobe {
                    pmu: self.pmu.number()?,
                    offset,
                    config: offsets
                        .pmu_config()
                        .map_err(|reason| probe.refused(reason))?,
                },
            };
            let attr = KernelAttr::for_site(&place, &path, self.mode, &probe.plan);
            for_trace.get_or_insert_with(|| attr.for_trace(self.pmu.known().unwrap_or(0)));
            // The call must not allocate.
            let mut events =
                Vec::with_capacity(request.perf_target.tids.len() * request.perf_target.cpus.len());
            let checked = probe.program.check_pages(offsets.pages());
            let opened = checked.and_then(|()| {
                planting(|| open_site(&attr, &request.perf_target, &self.rings, &mut events))
            });
            match opened {
                Ok(()) => {}
                Err(error) => {
                    sites.push(events);
                    undo(sites);
                    Interruption::check(&error)?;
                    return Err(refused(error));
                }
            }
            sites.push(events);
            places.push(place);
        }
        let attr = for_trace.ok_or_else(|| probe.refused(RefusalReason::NoSite))?;
        let ids = |events: &Vec<Event>| events.iter().map(|event| event.id).collect();
        let site_ids: Vec<Vec<u64>> = sites.iter().map(ids).collect();
        let of_sites = places.into_iter().zip(&site_ids);
        self.probes.push(ProbeEvents {
            sites: of_sites
                .map(|(place, ids)| SiteEvents {
                    place,
                    first_id: ids.first().copied(),
                })
                .collect(),
            events: sites.into_iter().flatten().collect(),
        });
        Ok(ProbeAttr {
            attr: EventAttr {
                attr,
                name: probe.event(),
                ids: site_ids.concat(),
            },
            site_ids,
        })
    }

    /// Creates a tracefs event, if that is the attach method, and returns its number.
    fn traced_event(
        &mut self,
        probe: &PlannedProbe,
        offsets: SiteOffsets,
    ) -> Option<io::Result<u64>> {
        let PerfMethod::Tracefs(group) = &mut self.method else {
            return None;
        };
        let event = group.add(probe.file(), offsets);
        Some(event.and_then(|event| group.id(&event)))
    }
}

/// Detaches the sites of a probe if the kernel refuses another one.
fn undo(sites: Vec<Vec<Event>>) {
    let events = sites.into_iter().flatten().map(OwnedFd::from).collect();
    let descriptors = Descriptors {
        events,
        ..Descriptors::default()
    };
    descriptors.close();
}

/// Opens the events of a site, one for each thread and CPU. `events` has room for these.
fn open_site(
    attr: &KernelAttr<'_>,
    perf_target: &PerfTarget,
    rings: &Rings,
    events: &mut Vec<Event>,
) -> io::Result<()> {
    events.clear();
    for &tid in &perf_target.tids {
        for (&cpu, owner) in perf_target.cpus.iter().zip(rings.owners()) {
            match Event::open(attr, tid, cpu) {
                Ok(event) => {
                    event.redirect(owner)?;
                    events.push(event);
                }
                Err(error) if has_ended(&error) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

impl PerfEngine {
    /// Attaches all probes, disabled.
    pub fn open(
        probes: Vec<PlannedProbe>,
        request: &AttachRequest<'_>,
        method: PerfMethod,
        mode: Mode,
    ) -> Result<Opened<Self>, RecordError> {
        let perf_target = &request.perf_target;
        let rings = Rings::map(mode, &perf_target.cpus, request.options.ring_bytes)?;
        let sites = probes.iter().map(|probe| probe.sites.len()).sum();
        request.announce(method.removals(sites, perf_target));
        let mut opened = Opened {
            engine: Self {
                probes: Vec::new(),
                rings,
                inexact: inexact(&method, mode, request),
                method,
                pmu: request.pmu,
                mode,
            },
            probes: Vec::new(),
            attrs: Vec::new(),
            refused: Vec::new(),
        };
        for probe in probes {
            match opened.engine.attach(&probe, request) {
                Ok(attr) => {
                    opened.attrs.push(attr);
                    opened.probes.push(Arc::new(probe));
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) => opened.refused.push(RefusedProbe { probe, error }),
            }
        }
        Ok(opened)
    }
}

/// Why perf events may miss hits or count them twice without reporting it.
fn inexact(method: &PerfMethod, mode: Mode, request: &AttachRequest<'_>) -> Option<InexactCounts> {
    let perf_target = &request.perf_target;
    match method {
        _ if matches!(request.filter, TaskFilter::ProcessesAlone(_)) => {
            Some(InexactCounts::NotInherited)
        }
        // A tracefs event is one consumer of a site, however many perf events are opened on it.
        PerfMethod::Tracefs(_) if perf_target.inherit => Some(InexactCounts::Inherited),
        // Each PMU event is a consumer of its own. They run one after the other, and each compares its CPU with the current one.
        PerfMethod::Pmu if perf_target.cpus.len() > 1 => Some(InexactCounts::PmuOnSeveralCpus),
        _ if !mode.counts_losses => Some(InexactCounts::LossesNotCounted),
        _ => None,
    }
}

impl PerfEngine {
    /// Opens the events of all sites on another CPU. `probes` are the attached ones.
    pub(in crate::engine) fn follow_to(
        &mut self,
        cpu: u32,
        probes: &[Arc<PlannedProbe>],
    ) -> Result<(), RecordError> {
        self.rings.add(cpu)?;
        for (probe, opened) in probes.iter().zip(&mut self.probes) {
            let path = probe.file().kernel_path();
            for (site, planned) in opened.sites.iter().zip(&probe.sites) {
                let pages = probe.offsets(&planned.site)?.pages();
                probe.program.check_pages(pages).map_err(refusal)?;
                let attr = KernelAttr::for_site(&site.place, &path, self.mode, &probe.plan);
                let mut event = planting(|| Event::open(&attr, -1, cpu)).map_err(refusal)?;
                let known = site.first_id.unwrap_or(event.id);
                self.rings.redirect_as(&mut event, known).map_err(refusal)?;
                event.enable().map_err(refusal)?;
                opened.events.push(event);
            }
        }
        Ok(())
    }
}

/// Number of bytes of stack that are copied for operands whose distance from the stack pointer is unknown.
const UNKNOWN_DEPTH: u32 = 8 << 10;

/// Splits probes so that the sites of each have the same plan.
pub(crate) fn split(probes: Vec<PlannedProbe>) -> Vec<PlannedProbe> {
    let mut split: Vec<PlannedProbe> = Vec::new();
    let mut current = CurrentProgram::default();
    for mut probe in probes {
        current.set(&probe.program);
        let first = split.len();
        let frames = probe.program.frames();
        let needed = probe.needed(true, &probe.arguments);
        for site in std::mem::take(&mut probe.sites) {
            let plan = plan(&site, probe.arch, needed.as_deref(), &frames, UNKNOWN_DEPTH);
            let mut of_probe = split.iter_mut().skip(first);
            match of_probe.find(|known| known.plan == plan) {
                Some(known) => known.sites.push(site),
                None => split.push(PlannedProbe {
                    plan,
                    sites: vec![site],
                    ..probe.clone()
                }),
            }
        }
    }
    split
}

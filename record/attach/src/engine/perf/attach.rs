//! Attaching a probe with perf events: one for each site, traced thread and CPU.

use std::io;
use std::os::fd::OwnedFd;

use usdtrec_format::perf::EventAttr;
use usdtrec_kernel::separate_process::planting;

use super::super::events::event::{Event, KernelAttr, SiteEvent};
use super::super::events::refusal::{has_ended, meaning, site_meaning};
use super::super::events::rings::Rings;
use super::super::opened::ProbeAttr;
use super::super::options::AttachRequest;
use super::super::perf_target::PerfTarget;
use super::super::release::{Descriptors, Release};
use super::{PerfEngine, PerfMethod, ProbeEvents, SiteEvents};
use crate::error::{Interruption, RecordError};
use crate::select::probe::{PlannedProbe, SiteOffsets};
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

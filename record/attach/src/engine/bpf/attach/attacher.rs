//! Attaching loaded programs to sites: by links to many sites, or by an event for each site.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use usdtrec_kernel::bpf::features::trials::has_cookies;
use usdtrec_kernel::bpf::sys::{self, Uprobes};
use usdtrec_kernel::host::cpus;
use usdtrec_kernel::host::kernel_version::tells_processes;
use usdtrec_kernel::separate_process::{self, planting};
use usdtrec_kernel::signals::EndSignal;
use usdtrec_kernel::{BpfRefusal, KernelError, KernelOperation};

use super::links::{Link, Links, UnitLink};
use super::links::{OpenSiteEvent, SiteEvent};
use super::site_programs::{BadSite, LinkKey, Site, SitePrograms};
use super::unit_links::UnitLinks;
use super::unit_links::{Attachment, Later, Linked};
use crate::engine::events::event::{has_ended, site_meaning};
use crate::engine::options::AttachMethod;
use crate::engine::options::AttachRequest;
use crate::engine::release::Release;
use crate::error::{Interruption, RecordError};
use crate::select::probe::SiteOffsets;

/// Sites that are attached to, and those that the kernel refused.
pub(in crate::engine::bpf) struct AttachedSites {
    pub attachment: Attachment,
    pub bad: Vec<BadSite>,
}

/// Sites that are being attached to.
pub(super) struct Attacher<'a> {
    sites: &'a [Site<'a>],
    end_signal: &'a EndSignal,
    programs: SitePrograms,
    /// The links so far.
    linked: Vec<Linked>,
    attachment: Attachment,
}

impl<'a> Attacher<'a> {
    /// Nothing is attached yet: `attachment` is empty.
    pub(super) fn new(
        sites: &'a [Site<'a>],
        programs: SitePrograms,
        mut attachment: Attachment,
        end_signal: &'a EndSignal,
    ) -> Self {
        attachment.programs = Arc::clone(&programs.programs);
        Self {
            sites,
            end_signal,
            programs,
            linked: Vec::new(),
            attachment,
        }
    }

    /// Attaches to all sites. With `is_apart`, attaches to the named processes only, and prepares the links of others.
    pub(super) fn plant(
        mut self,
        request: &AttachRequest<'_>,
        is_apart: bool,
    ) -> Result<AttachedSites, RecordError> {
        let bad = match self.attachment.attach_method {
            AttachMethod::Multi => {
                let processes = if is_apart {
                    request.filter.named_processes()
                } else {
                    request.filter.processes_alone()
                };
                self.attachment.processes = processes.filter(|_| tells_processes());
                let bad = self.link_all()?;
                if is_apart {
                    self.prepare(&bad)?;
                }
                let has_units = self.sites.iter().any(|site| site.unit.is_some());
                if !is_apart && (has_units || self.attachment.processes.is_none()) {
                    let planned = self.planned(&bad, false)?;
                    let processes = self.attachment.processes.clone();
                    let links = self.linked.drain(..).map(|linked| linked.link);
                    let units = UnitLinks::new(planned, processes, links.collect());
                    self.attachment.units = Some(Arc::new(units));
                }
                let linked = self.linked.drain(..).map(|linked| linked.link.link);
                self.attachment.links.extend(linked);
                bad
            }
            AttachMethod::Event => {
                request.announce(self.sites.len());
                self.open_all(request.pmu.number()?)?
            }
        };
        if bad.len() < self.sites.len() {
            return Ok(AttachedSites {
                attachment: self.attachment,
                bad,
            });
        }
        let mut errors = bad.into_iter().map(|bad| bad.error);
        Err(errors
            .next()
            .unwrap_or_else(|| KernelError::NoBpf(BpfRefusal::NoSite).into()))
    }

    /// Attaches to nothing, and prepares the links.
    pub(super) fn plan(mut self) -> Result<AttachedSites, RecordError> {
        let bad = std::mem::take(&mut self.programs.bad);
        self.prepare(&bad)?;
        Ok(AttachedSites {
            attachment: self.attachment,
            bad,
        })
    }

    /// Prepares the links of processes that do not have them yet, without sites that the kernel refuses.
    fn prepare(&mut self, bad: &[BadSite]) -> Result<(), RecordError> {
        let links = |is_everywhere| self.planned(bad, is_everywhere);
        let (own, everywhere) = (links(false)?, links(true)?);
        self.attachment.later = Some(Later {
            processes: self.attachment.processes.clone().unwrap_or_default(),
            named: std::mem::take(&mut self.linked),
            own,
            everywhere,
        });
        Ok(())
    }

    /// Removes what is attached, if a signal has arrived.
    fn check_signals(&mut self) -> Result<(), RecordError> {
        if self.end_signal.has_arrived() {
            let mut descriptors = self.attachment.take_descriptors();
            let linked = self.linked.drain(..).map(|linked| linked.link.link);
            descriptors.links.extend(linked);
            return Err(Release::start(descriptors).interrupted());
        }
        Ok(())
    }

    /// One link for the sites of one program, file and unit.
    fn link_all(&mut self) -> Result<Vec<BadSite>, RecordError> {
        let mut bad = std::mem::take(&mut self.programs.bad);
        for (key, sites) in self.programs.together(self.sites) {
            self.check_signals()?;
            self.link(key, &sites, &mut bad)?;
        }
        bad.sort_by_key(|bad| bad.site);
        Ok(bad)
    }

    /// Links sites; if the kernel refuses, each half by itself, until those that it refuses are found.
    fn link(
        &mut self,
        key: LinkKey,
        sites: &[usize],
        bad: &mut Vec<BadSite>,
    ) -> Result<(), RecordError> {
        let error = match self.link_once(key, sites) {
            Ok(mut links) => {
                self.linked.append(&mut links);
                return Ok(());
            }
            Err(error) => error,
        };
        Interruption::check(&error)?;
        let halves = sites.split_at(sites.len() / 2);
        match sites {
            [] => {}
            [site] => bad.push(self.not_planted(*site, error)),
            _ => {
                self.link(key, halves.0, bad)?;
                self.link(key, halves.1, bad)?;
            }
        }
        Ok(())
    }

    /// One link, or one for each process that is still there.
    fn link_once(&self, key: LinkKey, sites: &[usize]) -> io::Result<Vec<Linked>> {
        let first = sites.first().and_then(|index| self.sites.get(*index));
        let file = &first.ok_or(io::ErrorKind::NotFound)?.probe.program;
        let uprobes = self.uprobes(sites, false)?;
        let (program, path) = (self.programs.get(key.program)?, file.file().kernel_path());
        file.check_pages(uprobes.pages())?;
        let link = |pid| {
            let link = planting(|| sys::link_uprobes(program, &path, &uprobes, pid))?;
            let link = UnitLink {
                unit: key.unit,
                file: Some(Arc::clone(file.file())),
                link,
            };
            Ok(Linked { pid, link })
        };
        let Some(processes) = &self.attachment.processes else {
            return Ok(vec![link(0)?]);
        };
        let mut links = Vec::new();
        for pid in processes {
            match link(*pid) {
                Ok(link) => links.push(link),
                // One that has ended hits no more.
                Err(error) if has_ended(&error) => {}
                Err(error) => {
                    let links = links.into_iter().map(|linked| linked.link.link);
                    separate_process::close(links.collect());
                    return Err(error);
                }
            }
        }
        Ok(links)
    }

    /// One event and one link for each site.
    fn open_all(&mut self, pmu: u32) -> Result<Vec<BadSite>, RecordError> {
        let mut bad = std::mem::take(&mut self.programs.bad);
        let without: HashSet<usize> = bad.iter().map(|bad| bad.site).collect();
        let cpu = cpus::any_online();
        for index in (0..self.sites.len()).filter(|index| !without.contains(index)) {
            self.check_signals()?;
            let event = match self.event(index, (pmu, cpu)) {
                Ok(event) => event,
                Err(error) => {
                    bad.push(BadSite { site: index, error });
                    continue;
                }
            };
            let checked = self.check_pages(index);
            match checked.and_then(|()| planting(|| event.open())) {
                Ok(OpenSiteEvent { event, link }) => {
                    self.attachment.events.push(event);
                    self.attachment.links.extend(link);
                }
                Err(error) => {
                    Interruption::check(&error)?;
                    bad.push(self.not_planted(index, error));
                }
            }
        }
        Ok(bad)
    }

    fn check_pages(&self, index: usize) -> io::Result<()> {
        let site = &self.sites[index];
        site.probe.program.check_pages(offsets(site)?.pages())
    }

    /// The event of a site.
    fn event(&self, index: usize, (pmu, cpu): (u32, u32)) -> Result<SiteEvent<'_>, RecordError> {
        let site = &self.sites[index];
        let offsets = site.probe.offsets(site.site)?;
        let config = offsets.pmu_config();
        let program = self.programs.of_site(index);
        Ok(SiteEvent {
            pmu,
            path: site.probe.file().kernel_path(),
            offset: offsets.offset,
            config: config.map_err(|reason| site.probe.refused(reason))?,
            cpu,
            program: program.map_err(|error| self.not_planted(index, error).error)?,
            cookie: has_cookies().then(|| self.programs.cookie(index, site, false)),
        })
    }

    fn not_planted(&self, index: usize, source: io::Error) -> BadSite {
        let site = &self.sites[index];
        BadSite {
            site: index,
            error: RecordError::Attach {
                event: site.probe.event(),
                path: site.probe.path.clone(),
                offset: site.site.offset.unwrap_or(0),
                meaning: site_meaning(&source, site.site),
                source,
            },
        }
    }

    /// The links that there can be, without sites that the kernel refuses.
    fn planned(&self, bad: &[BadSite], is_everywhere: bool) -> Result<Links, RecordError> {
        let mut links = Links::default();
        let bad: HashSet<usize> = bad.iter().map(|bad| bad.site).collect();
        for (key, mut together) in self.programs.together(self.sites) {
            together.retain(|site| !bad.contains(site));
            let Some(first) = together.first().and_then(|index| self.sites.get(*index)) else {
                continue;
            };
            let uprobes = self.uprobes(&together, is_everywhere);
            let uprobes = uprobes.map_err(KernelError::operation(KernelOperation::Links(
                first.probe.event(),
            )))?;
            links.add(Link {
                programs: Arc::clone(&self.programs.programs),
                program: key.program,
                path: first.probe.file().kernel_path(),
                file: Arc::clone(&first.probe.program),
                uprobes,
                unit: key.unit,
            });
        }
        Ok(links)
    }

    /// The sites with these indexes, for one link; `is_everywhere` as in [`Cookie`](super::super::contract::Cookie).
    fn uprobes(&self, sites: &[usize], is_everywhere: bool) -> io::Result<Uprobes> {
        let mut uprobes = Uprobes::default();
        for &index in sites {
            let site = self.sites.get(index).ok_or(io::ErrorKind::NotFound)?;
            let SiteOffsets { offset, ref_ctr } = offsets(site)?;
            uprobes.offsets.push(offset);
            uprobes.ref_ctrs.push(ref_ctr);
            let cookie = self.programs.cookie(index, site, is_everywhere);
            uprobes.cookies.push(cookie);
        }
        Ok(uprobes)
    }
}

fn offsets(site: &Site<'_>) -> io::Result<SiteOffsets> {
    site.probe.offsets(site.site).map_err(io::Error::other)
}

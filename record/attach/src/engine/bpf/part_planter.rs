//! Attaching further probes while a recording runs.
//!
//! Where few recorded processes have links of their own ([`children`](super::processes::children)), so they have of later parts. Otherwise a
//! later part has links in all processes of its files: its programs record the processes of the map of recorded processes, which has every
//! child from its `fork` on, so a hit is neither missed nor recorded twice.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::perf::Attr;
use usdtrec_kernel::host::limits;
use usdtrec_kernel::separate_process;
use usdtrec_kernel::signals::EndSignal;

use super::super::events::event::UprobePmu;
use super::super::options::{
    AttachMethod, AttachRequest, EngineChoice, EngineOptions, PerfTarget, TaskFilter,
};
use super::super::outcome::Opened;
use super::super::release::{Descriptors, Release};
use super::aggregate::grouping::EventNeeds;
use super::attach::Attaching;
use super::attach::attacher::AttachedSites;
use super::attach::site_programs::Site;
use super::attach::unit_links::UnitLinks;
use super::bpf_engine::BpfEngine;
use super::control::Control;
use super::kernel_objects::setup;
use super::objects::SharedMaps;
use super::open::{Fitting, described, refused, sites, with_ids};
use super::part::Part;
use super::plan::{Ids, PlanRequest};
use super::processes::children::{Children, LinkAdder};

use super::contract::RecordedProcesses;
use super::processes::watched_files::WatchedFiles;
use super::program::spec::Common;
use super::samples::Samples;
use crate::error::RecordError;
use crate::select::probe::{PlannedProbe, RefusedProbe};

/// Attaches further probes while a recording runs, in a thread of its own: it takes milliseconds, in which the rings must be drained.
#[derive(Debug)]
pub struct PartPlanter {
    settings: LateSettings,
    maps: SharedMaps,
    /// What attaches to processes with links of their own; `None` if there are none.
    apart: Option<LinkAdder>,
    /// Settings of the programs.
    common: Common,
    /// Attr of the recording's other events.
    metadata: Attr,
    /// The first ids of the next part.
    ids: Ids,
}

/// What later probes are attached with.
#[derive(Debug)]
pub struct LateSettings {
    /// The options of the recording.
    pub options: EngineOptions,
    /// Whose hits are recorded.
    pub filter: TaskFilter,
    /// The uprobe PMU.
    pub pmu: UprobePmu,
    /// Whether the recording is to end.
    pub end_signal: EndSignal,
}

/// Attached probes that are not part of the recording yet. They record nothing before they are added and enabled. Dropping them detaches
/// them.
#[derive(Debug)]
pub struct LatePart {
    pub(in crate::engine) opened: Opened<Part>,
    /// Whether they are attached to all processes of their files, although only some are recorded.
    pub(in crate::engine) is_everywhere: bool,
}

impl LatePart {
    /// The probes that are attached, and sites that the kernel refused.
    pub fn probes(&self) -> &[Arc<PlannedProbe>] {
        &self.opened.probes
    }

    /// The same with further probes that are refused.
    pub fn with_refused(mut self, refused: Vec<RefusedProbe>) -> Self {
        self.opened.refused.extend(refused);
        self
    }
}

impl PartPlanter {
    /// Attaches probes of files that are not recorded yet, disabled.
    ///
    /// # Errors
    /// The errors of opening an engine; [`RecordError::Interrupted`] if the recording ends meanwhile.
    pub fn plant(&mut self, probes: &[PlannedProbe]) -> Result<LatePart, RecordError> {
        let LateSettings {
            options,
            filter,
            pmu,
            end_signal,
        } = &self.settings;
        let has_thread = self.common.thread_base.is_some();
        let request = PlanRequest {
            probes,
            options,
            has_thread,
            first_type: self.ids.event,
            may_wait: false,
        };
        let Fitting {
            groups,
            refused: unfit,
        } = Fitting::plan(&request, self.common.spans)?;
        if let Some(grouping) = &self.common.grouping {
            grouping.check(&EventNeeds::from_events(&groups))?;
        }
        let samples = Samples::new(groups, self.ids, options);
        let request = AttachRequest {
            options,
            // For what all parts share.
            perf_target: PerfTarget::default(),
            filter: filter.clone(),
            pmu: *pmu,
            end_signal,
            may_wait: false,
            say: &|_| {},
        };
        let attached = self.attach(&samples, &request)?;
        self.ids = samples.next_ids();
        let AttachedPart {
            sites,
            control,
            is_everywhere,
        } = attached;
        let (probes, attrs) = described(&samples, &self.metadata);
        Ok(LatePart {
            is_everywhere,
            opened: Opened {
                probes,
                attrs,
                refused: refused(&samples, sites.bad, unfit),
                engine: Part {
                    attachment: sites.attachment,
                    control: Arc::new(control),
                    samples,
                    probes_before: 0,
                    is_detached: false,
                },
            },
        })
    }
}

/// Sites of a part that are attached to.
struct AttachedPart {
    sites: AttachedSites,
    control: Control,
    is_everywhere: bool,
}

impl PartPlanter {
    fn attach(
        &self,
        samples: &Samples,
        request: &AttachRequest<'_>,
    ) -> Result<AttachedPart, RecordError> {
        // They stay attached.
        let sites = sites(&samples.groups, None);
        let common = with_ids(&self.common, samples);
        if let Some(apart) = self.apart.as_ref().filter(|apart| apart.is_fast()) {
            let control = new_control(samples)?;
            let planned = self.attaching(&sites, &common, &control, request).plan()?;
            let AttachedSites {
                mut attachment,
                bad,
            } = planned;
            if let Some(later) = attachment.later.take()
                && apart.add(later.own, later.everywhere)
            {
                return Ok(AttachedPart {
                    sites: AttachedSites { attachment, bad },
                    control,
                    is_everywhere: apart.is_everywhere(),
                });
            }
        }
        // Links of other programs for these sites may not be closed yet. With a control map of their own these stay disabled.
        let control = new_control(samples)?;
        let sites = self.attaching(&sites, &common, &control, request).run()?;
        let is_everywhere =
            sites.attachment.processes.is_none() && self.common.recorded != RecordedProcesses::All;
        Ok(AttachedPart {
            sites,
            control,
            is_everywhere,
        })
    }

    fn attaching<'a>(
        &'a self,
        sites: &'a [Site<'a>],
        common: &Common,
        control: &'a Control,
        request: &'a AttachRequest<'a>,
    ) -> Attaching<'a> {
        Attaching {
            sites,
            common: common.clone(),
            maps: self.maps.with_control(control.as_fd()),
            request,
        }
    }
}

/// The words of a part.
fn new_control(samples: &Samples) -> Result<Control, RecordError> {
    let control = samples.new_control();
    let control = control.map_err(setup("map"))?;
    samples.set_stack_sizes(&control);
    Ok(control)
}

impl BpfEngine {
    /// What attaches further probes, one for the recording. `metadata` is the attr of the session's other events.
    ///
    /// # Errors
    /// The error of duplicating descriptors.
    pub fn late_planter(&self, settings: LateSettings, metadata: &Attr) -> io::Result<PartPlanter> {
        let attachment = &self.parts.first.attachment;
        let choice = match attachment.attach_method {
            _ if self.parts.first.samples.ids() == 0 => settings.options.choice,
            AttachMethod::Multi => EngineChoice::BpfMulti,
            AttachMethod::Event => EngineChoice::BpfPerf,
        };
        let last = self.parts.iter().last().unwrap_or(&self.parts.first);
        Ok(PartPlanter {
            settings: LateSettings {
                options: EngineOptions {
                    choice,
                    ..settings.options
                },
                ..settings
            },
            maps: self.objects.share()?,
            apart: self.children.as_ref().map(Children::adder).transpose()?,
            common: Common {
                touch: attachment.touch,
                ..self.common.clone()
            },
            metadata: metadata.clone(),
            ids: last.samples.next_ids(),
        })
    }

    /// Removes the parts that were added since the recording had so many probes, before they were enabled.
    pub fn take_back(&mut self, before: usize) {
        for mut part in self.parts.take_since(before) {
            let descriptors = part.attachment.take_descriptors();
            self.release_some(descriptors);
        }
    }

    /// Detaches the probes of the part that follow so many others for good, and keeps their counts. The end of the removal is not waited for.
    pub fn detach(&mut self, before: usize) {
        let Some(part) = self.parts.late_mut(before) else {
            return;
        };
        part.is_detached = true;
        part.control.set_enabled(false);
        let descriptors = part.attachment.take_descriptors();
        // The links keep the programs until the kernel has removed them.
        part.attachment.units = None;
        part.attachment.programs = Arc::default();
        self.release_some(descriptors);
    }

    fn release_some(&mut self, descriptors: Descriptors) {
        self.releases
            .retain_mut(|release| !release.wait(Duration::ZERO));
        self.releases.push(Release::start(descriptors));
    }

    /// Adds attached probes, disabled. `probes_before` is the number of probes that the recording has.
    pub fn add(&mut self, mut part: Part, probes_before: usize) {
        part.probes_before = probes_before;
        self.parts.add(part);
    }
}

/// Detaches and attaches units.
#[derive(Debug)]
pub struct UnitSwitcher(Switched);

#[derive(Debug)]
enum Switched {
    /// In named processes, or in all.
    Links(Arc<UnitLinks>),
    /// In each process with links of its own.
    Apart(LinkAdder),
}

/// What a switch came to.
#[derive(Debug)]
pub struct SwitchResult {
    /// The CPU time that it took.
    pub cost: Duration,
    /// Why the probes are not attached. When they are detached, there is no error.
    pub refused: Option<io::Error>,
}

impl UnitSwitcher {
    /// Detaches a unit, and waits until the kernel has removed its probes.
    pub fn detach(&self, unit: usize) -> SwitchResult {
        measured(|| {
            let links = match &self.0 {
                Switched::Links(links) => links.take(unit),
                Switched::Apart(adder) => adder.take_unit(unit)?,
            };
            separate_process::close(links);
            Ok(())
        })
    }

    /// Attaches a unit again. If the kernel refuses, it is attached nowhere.
    pub fn attach(&self, unit: usize) -> SwitchResult {
        measured(|| match &self.0 {
            Switched::Links(links) => links.attach(unit).map_err(|not| {
                separate_process::close(not.created);
                not.error
            }),
            Switched::Apart(adder) => adder.attach_unit(unit),
        })
    }
}

fn measured(switch: impl FnOnce() -> io::Result<()>) -> SwitchResult {
    let before = limits::of_thread_and_children();
    let refused = switch().err();
    SwitchResult {
        cost: limits::of_thread_and_children().saturating_sub(before),
        refused,
    }
}

impl BpfEngine {
    /// What detaches units of the probes that a recording with a budget began with; `None` if there were none.
    ///
    /// # Errors
    /// The error of duplicating descriptors.
    pub fn unit_switcher(&self) -> io::Result<Option<UnitSwitcher>> {
        let units = self.parts.first.attachment.units.as_ref();
        let switched = match (&self.children, units) {
            (Some(children), _) => Some(Switched::Apart(children.adder()?)),
            (None, units) => units.map(|units| Switched::Links(Arc::clone(units))),
        };
        Ok(switched.map(UnitSwitcher))
    }
}

/// The links of a file.
#[derive(Debug)]
pub struct FileLinks {
    links: Arc<UnitLinks>,
    file: Arc<ObjectFile>,
}

impl FileLinks {
    /// Detaches, and waits until the kernel has removed the probes.
    pub fn detach(&self) {
        separate_process::close(self.links.take_file(&self.file));
    }

    /// Attaches again.
    ///
    /// # Errors
    /// The error of bpf(2): nothing is attached; `Interrupted` if the recording has ended.
    pub fn attach(&self) -> io::Result<()> {
        self.links.attach_file(&self.file).map_err(|not| {
            separate_process::close(not.created);
            not.error
        })
    }
}

impl BpfEngine {
    /// The links of the file of a probe; `None` if they are not in all processes of it, or are events.
    pub fn file_links(&self, probe: usize, file: &Arc<ObjectFile>) -> Option<FileLinks> {
        let parts = self.parts.iter().filter(|part| part.probes_before <= probe);
        let part = parts.max_by_key(|part| part.probes_before)?;
        let links = part.attachment.units.as_ref();
        Some(FileLinks {
            links: Arc::clone(links.filter(|links| links.is_everywhere())?),
            file: Arc::clone(file),
        })
    }

    /// Takes what watches files with probes in all processes; or why there is nothing.
    pub fn take_watched_files(&mut self) -> Option<io::Result<WatchedFiles>> {
        self.objects.watched_files.take()
    }
}

//! A recording session: from attached probes to a finished trace.

use std::io;
use std::time::Duration;

use usdtrec_format::perf::{EventAttr, Pmu};
use usdtrec_format::trace::{Compression, TraceInfo};
use usdtrec_format::{Definitions, FileDefinition, Pattern, ProbeDefinition, SiteDefinition};

use crate::engine::{
    AttachRequest, Attached, EngineOptions, InKernel, InexactCounts, NotBetter, ProbeAttr,
    SkippedMethod, UprobePmu, UsedEngine, missing_keeper,
};
use crate::error::RecordError;
use crate::host;
use crate::host::cpus;
use crate::left_breakpoints::SiteNotes;
use crate::output::event_names;
use crate::output::files::{Packing, Switch};
use crate::output::threads::Threads;
use crate::plan::call_graph::CallGraph;
use crate::recording::attach_callbacks::Planting;
use crate::recording::metadata;
use crate::recording::shortfalls::Shortfalls;
use crate::recording::target::Target;
use crate::select::probe::{PlannedProbe, RefusedProbe};
use crate::semaphores::{self, Semaphores};
use crate::stacks::StackUnwinder;
use crate::usage_error::UsageError;
use crate::verify::ExpectedFiles;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is recorded.
    pub target: Target,
    /// Patterns of the probes. Files with matching probes that are first mapped while recording are reported.
    pub patterns: Vec<Pattern>,
    /// Whether children that recorded processes start later are recorded, too.
    pub inherit: bool,
    /// Compression of the trace.
    pub compression: Compression,
    /// The threads that compress it.
    pub threads: Threads,
    /// Time after which the recording ends; `None` for no limit.
    pub duration: Option<Duration>,
    /// Size of all files at which the recording ends, bytes; `None` for no limit.
    pub max_size: Option<u64>,
    /// When to continue with a new file; `None` for never.
    pub switch: Option<Switch>,
    /// Options of the engine.
    pub engine: EngineOptions,
    /// If the recording ends before the command: leave the command running, as `perf trace` does, instead of ending it, as `perf record`
    /// does.
    pub leave_command: bool,
    /// Program name and version, for the trace.
    pub producer: String,
    /// Command line, for the trace.
    pub command_line: Vec<String>,
}

impl Options {
    pub(crate) const fn packing(&self) -> Packing {
        Packing {
            compression: self.compression,
            threads: self.threads,
        }
    }
}

/// A session whose probes are attached and not yet enabled.
#[derive(Debug)]
pub struct Session {
    pub(crate) options: Options,
    /// The semaphores that the kernel counts wrong. Before `attached`: they are decremented first.
    pub(crate) semaphores: Option<Semaphores>,
    pub(crate) attached: Attached,
    /// What is found not to work in recorded processes.
    pub(crate) shortfalls: Shortfalls,
    /// Notes of the sites; `None` if they cannot be written. After `attached`: they are removed last.
    pub(crate) notes: Option<SiteNotes>,
    cpus: Vec<u32>,
}

impl Session {
    /// Attaches the probes.
    ///
    /// # Errors
    /// [`RecordError`]: the kernel refuses, no probe could be attached, or a signal arrives.
    pub fn attach(
        mut probes: Vec<PlannedProbe>,
        options: Options,
        planting: Planting<'_>,
    ) -> Result<Self, RecordError> {
        probes.iter_mut().try_for_each(PlannedProbe::find_shown)?;
        let cpus = wanted_cpus(options.engine.cpus.as_deref())?;
        let request = AttachRequest {
            options: &options.engine,
            watch: options.target.watch(cpus.clone(), options.inherit)?,
            filter: options.target.filter(options.inherit),
            pmu: UprobePmu::find(),
            planting,
        };
        // Without root's rights there is nowhere to write them.
        let notes = SiteNotes::write(
            &ExpectedFiles::of_probes(&probes),
            &semaphores::places(&probes),
        )
        .ok();
        let mut attached = Attached::open(probes, &request)?;
        for probe in &attached.probes {
            probe.program.free();
        }
        if attached.probes.is_empty() {
            let refused = attached.refused.pop();
            return Err(refused.map_or(RecordError::Nothing, |refused| refused.error));
        }
        let shortfalls = Shortfalls::default();
        let semaphores = Semaphores::start(
            &attached.probes,
            &request.filter,
            request.pmu,
            shortfalls.clone(),
        )?;
        Ok(Self {
            options,
            semaphores,
            attached,
            shortfalls,
            notes,
            cpus,
        })
    }

    /// Probes that the kernel refused.
    #[must_use]
    pub fn refused(&self) -> &[RefusedProbe] {
        &self.attached.refused
    }

    /// Probes that are attached.
    #[must_use]
    pub fn probes(&self) -> &[PlannedProbe] {
        &self.attached.probes
    }

    /// CPUs recorded.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Size of each ring for samples, bytes.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.attached.engine.ring_bytes()
    }

    /// Size that each ring should have, bytes, if the kernel had no memory for it.
    #[must_use]
    pub fn unavailable_ring_bytes(&self) -> Option<usize> {
        self.attached.engine.unavailable_ring_bytes()
    }

    /// The engine, and the attach method.
    #[must_use]
    pub fn engine(&self) -> UsedEngine {
        self.attached.engine.used()
    }

    /// Whether probes are attached to the recorded processes only, and to each of their children, which is held until it has them. With
    /// many children they are attached to all processes of the files ([`EngineOutcome::planted_everywhere`](crate::EngineOutcome)).
    #[must_use]
    pub fn spares_strangers(&self) -> bool {
        self.attached.engine.spares_strangers()
    }

    /// Whether the recorder is in a pid namespace, as of a container, and processes outside of it are not recorded.
    #[must_use]
    pub const fn is_in_namespace(&self) -> bool {
        self.attached.engine.is_in_namespace()
    }

    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    #[must_use]
    pub fn inexact(&self) -> Option<InexactCounts> {
        self.attached.engine.inexact()
    }

    /// Why the engine or its attach method is not the best of those that were allowed; `None` if it is.
    #[must_use]
    pub fn not_better(&self) -> Option<NotBetter<'_>> {
        let passed_over = self.attached.passed_over.as_ref().map(NotBetter::Engine);
        let skipped = self.attached.engine.skipped().last();
        passed_over.or_else(|| skipped.map(NotBetter::AttachMethod))
    }

    /// Errors of the better engines that were tried first.
    #[must_use]
    pub fn passed_over(&self) -> Option<&RecordError> {
        self.attached.passed_over.as_ref()
    }

    /// What is open in the kernel for the probes.
    #[must_use]
    pub fn in_kernel(&self) -> InKernel<'_> {
        self.attached.engine.in_kernel()
    }

    /// The attach methods of the bpf engine that do not work here, with the errors.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedMethod] {
        self.attached.engine.skipped()
    }

    /// The error of io_uring_setup(2), without which breakpoints may stay in programs if this process and all its helpers are killed while
    /// the probes are removed; `None` if it succeeds.
    #[must_use]
    pub fn not_kept(&self) -> Option<io::Error> {
        missing_keeper()
    }

    /// Records of the processes that run already.
    pub(crate) fn running_processes(&self) -> Vec<u8> {
        metadata::synthesise(
            &self.options.target,
            self.attached.processes.attr.attr.id_type(),
            self.maps_data(),
        )
    }

    /// Whether mappings without code are recorded: perf reads unwind tables through them.
    pub(crate) fn maps_data(&self) -> bool {
        self.attached.processes.maps_data()
    }

    /// Whether the kernel enables the events when the command is executed.
    pub(crate) fn starts_at_exec(&self) -> bool {
        matches!(self.options.target, Target::Command(_))
    }

    /// The head of the trace.
    pub(crate) fn describe(&self) -> Result<TraceInfo, RecordError> {
        let mut info = host::describe(&self.options.producer, self.options.command_line.clone())?;
        let pmus = [(1, "software"), (2, "tracepoint")];
        let uprobe = self.attached.pmu.known();
        let uprobe = uprobe.map(|number| (number, "uprobe"));
        let pmus = pmus.into_iter().chain(uprobe).map(|(kind, name)| Pmu {
            kind,
            name: name.to_owned(),
        });
        info.pmus = pmus.collect();
        let probes = self.attached.probes.iter().zip(&self.attached.attrs);
        let planted = probes.map(|(probe, attr)| self.written(probe, &attr.attr));
        info.events = planted
            .chain([self.attached.processes.attr.clone()])
            .collect();
        info.tracepoints = self.attached.engine.formats();
        event_names::make_unique(&mut info.events, &mut info.tracepoints);
        info.definitions = Some(self.definitions());
        Ok(info)
    }

    /// The event of the trace for one whose samples the engine makes.
    fn written(&self, probe: &PlannedProbe, event: &EventAttr) -> EventAttr {
        let mut event = event.clone();
        let unwinds = |graph: CallGraph| graph.unwinds() && !graph.keeps_copy(&probe.plan);
        if probe.graph(self.options.engine.graph).is_some_and(unwinds) {
            event.attr = StackUnwinder::written(event.attr, &probe.plan);
        }
        event
    }

    /// Whether all patterns that select a probe select any probe.
    fn is_by_any_pattern(&self, probe: &PlannedProbe) -> bool {
        let patterns = self.options.patterns.iter();
        let mut selecting = patterns
            .filter(|pattern| pattern.matches(&probe.provider, &probe.name))
            .peekable();
        selecting.peek().is_some() && selecting.all(Pattern::is_any)
    }

    fn definitions(&self) -> Definitions {
        let mut files: Vec<FileDefinition> = Vec::new();
        let mut probes = Vec::new();
        for (probe, attr) in self.attached.probes.iter().zip(&self.attached.attrs) {
            let file = FileDefinition {
                path: probe.path.clone(),
                build_id: probe.build_id,
                arch: probe.arch,
                by_any_pattern: self.is_by_any_pattern(probe),
            };
            let index = files
                .iter()
                .position(|known| *known == file)
                .unwrap_or_else(|| {
                    files.push(file);
                    files.len() - 1
                });
            probes.push(definition(probe, attr, index));
        }
        Definitions {
            version: Definitions::VERSION,
            producer: self.options.producer.clone(),
            engine: self.attached.engine.used().name().to_owned(),
            uncounted: self.inexact().map(|reason| reason.to_string()),
            files,
            probes,
        }
    }
}

fn definition(probe: &PlannedProbe, attr: &ProbeAttr, file: usize) -> ProbeDefinition {
    let sites = probe
        .sites
        .iter()
        .zip(&attr.site_ids)
        .map(|(site, ids)| SiteDefinition {
            site: site.site.clone(),
            ids: ids.clone(),
            place: site.place.clone(),
        });
    ProbeDefinition {
        event: probe.event(),
        provider: probe.provider.clone(),
        name: probe.name.clone(),
        description: probe.description.clone(),
        needs: probe.needs.clone(),
        call: probe.call.clone(),
        telemetry: probe.telemetry.clone(),
        filter: probe.filter.as_ref().map(ToString::to_string),
        file,
        plan: probe.plan.clone(),
        arguments: probe.arguments.clone(),
        shown: probe.shown.clone(),
        sites: sites.collect(),
    }
}

fn wanted_cpus(asked: Option<&[u32]>) -> Result<Vec<u32>, RecordError> {
    let online = cpus::online()?;
    let Some(asked) = asked else {
        return Ok(online);
    };
    match asked.iter().find(|cpu| !online.contains(cpu)) {
        Some(&cpu) => Err(UsageError::Offline { cpu, online }.into()),
        None => Ok(asked.to_vec()),
    }
}

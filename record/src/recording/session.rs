//! A recording session: from attached probes to a finished trace.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use usdtrec_attach::budget::HitCosts;
use usdtrec_attach::callbacks::{Caution, Planting};
use usdtrec_attach::engine::{
    AddedProbes, AttachRequest, Attached, Engine, EngineOptions, LatePart, LateSettings, NotBetter,
    ProbeAttr, UprobePmu, UsedEngine,
};
use usdtrec_attach::error::{RecordError, UsageError};
use usdtrec_attach::plan::call_graph::CallGraph;
use usdtrec_attach::select::argument_list::leave_out_unfit;
use usdtrec_attach::select::probe::{PlannedProbe, RefusedProbe};
use usdtrec_attach::select::refusal::{Refusal, Refusals};
use usdtrec_attach::target::Target;
use usdtrec_format::perf::{EventAttr, Pmu, RecordOrder};
use usdtrec_format::trace::{Compression, TraceInfo};
use usdtrec_format::{Definitions, FileDefinition, Pattern, ProbeDefinition, SiteDefinition};
use usdtrec_kernel::host::cpus;
use usdtrec_kernel::host::kernel_version::profiler_panic;
use usdtrec_kernel::host::named_process::NamedProcess;
use usdtrec_kernel::signals::EndSignal;
use usdtrec_kernel::{KernelError, KernelOperation, host};
use usdtrec_watch::left_breakpoints::SiteNotes;
use usdtrec_watch::semaphores::{self, Semaphores};
use usdtrec_watch::shortfalls::Shortfalls;
use usdtrec_watch::stacks::StackUnwinder;
use usdtrec_watch::verify::ExpectedFiles;

use crate::output::added_events::{AddedEvents, make_unique};
use crate::output::files::{Packing, Switch};
use crate::output::writer::most_threads;
use crate::recording::build_ids::BuildIds;
use crate::recording::following::settings::Following;
use crate::recording::late_planter::{LatePlanter, SemaphoreStart};
use crate::recording::metadata::{KnownFiles, Wanted};
use crate::recording::remarks;
use crate::recording::sought_files::SoughtFiles;
use crate::triggers::pace::TriggerOptions;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is recorded.
    pub target: Target,
    /// Processes of which the outcome says how they ended.
    pub named: Vec<u32>,
    /// What is attached in files that appear while recording.
    pub following: Following,
    /// Whether children that recorded processes start later are recorded, too.
    pub inherit: bool,
    /// Compression of the trace.
    pub compression: Compression,
    /// Time after which the recording ends; `None` for no limit.
    pub duration: Option<Duration>,
    /// Size of all files at which the recording ends, bytes; `None` for no limit.
    pub max_size: Option<u64>,
    /// When to continue with a new file; `None` for never.
    pub switch: Option<Switch>,
    /// What hits have the last seconds written to a file, or end the recording.
    pub triggers: TriggerOptions,
    /// Options of the engine.
    pub engine: EngineOptions,
    /// What a hit takes, once it is measured, when [`Progress`](super::Progress) says that it is needed to know whether a probe takes much of a
    /// thread's time; `None` inside if it cannot be measured, and outside if nobody asks.
    pub hit_costs: Option<Arc<OnceLock<Option<HitCosts>>>>,
    /// If the recording ends before the command: leave the command running, as `perf trace` does, instead of ending it, as `perf record`
    /// does.
    pub leave_command: bool,
    /// Program name and version, for the trace.
    pub producer: String,
    /// Command line, for the trace.
    pub command_line: Vec<String>,
}

impl Options {
    pub(super) fn packing(&self) -> Packing {
        Packing {
            compression: self.compression,
            threads: most_threads(),
        }
    }
}

/// A session whose probes are attached and not yet enabled.
#[derive(Debug)]
pub struct Session {
    pub(crate) options: Options,
    /// The semaphores that the kernel counts wrong. Before `attached`: they are decremented first.
    pub(super) semaphores: Option<Semaphores>,
    pub(crate) attached: Attached,
    /// Build-ids of the files that processes map.
    pub(super) build_ids: BuildIds,
    /// Brings process records into the order of time.
    pub(super) process_order: RecordOrder,
    /// What is found not to work in recorded processes.
    pub(super) shortfalls: Shortfalls,
    /// Notes of the sites; `None` if they cannot be written. After `attached`: they are removed last.
    pub(super) notes: Option<SiteNotes>,
    cpus: Vec<u32>,
    pub(super) named: Vec<NamedProcess>,
    /// Whether the recording is to end.
    end_signal: EndSignal,
    /// What counts semaphores of probes that are added, if no others were counted before.
    semaphores_started: Sender<Semaphores>,
    started_semaphores: Receiver<Semaphores>,
    /// Number of refusals of files that nobody named.
    pub(super) refused_files: usize,
}

/// Attaches the probes beside others that are unfit.
fn open(
    probes: Vec<PlannedProbe>,
    mut unfit: Vec<RefusedProbe>,
    request: &AttachRequest<'_>,
) -> Result<Attached, RecordError> {
    let has_none = probes.is_empty();
    match Attached::open(probes, request) {
        // No engine can wait: what is wrong with the probes is the error.
        Err(error) if has_none && !matches!(error, RecordError::Interrupted(_)) => {
            Err(unfit.pop().map_or(error, |unfit| unfit.error))
        }
        Err(error) => Err(error),
        Ok(mut attached) => {
            attached.refused.append(&mut unfit);
            Ok(attached)
        }
    }
}

/// Notes where probes are attached, for those who look after a recorder that was killed.
fn note_sites(probes: &[PlannedProbe], say: &dyn Fn(&Caution)) -> Option<SiteNotes> {
    let notes = SiteNotes::write(
        &ExpectedFiles::of_probes(probes),
        &semaphores::places(probes),
    );
    let not_noted = |error| {
        // Others than root have nowhere to write them.
        if rustix::process::geteuid().is_root() {
            say(&Caution::NotNoted(error));
        }
    };
    notes.map_err(not_noted).ok()
}

/// Why capabilities are needed as long as the recording lasts.
fn needs_capabilities(attached: &Attached, has_semaphores: bool) -> Option<&'static str> {
    if has_semaphores {
        return Some("the kernel miscounts a semaphore, which is corrected in each process");
    }
    if attached.engine.used() == UsedEngine::PerfTracefs {
        return Some("tracefs events are removed by their names at the end");
    }
    let is_holding = attached.engine.held().is_some();
    is_holding.then_some("children are held until they have probes of their own")
}

impl Session {
    /// Attaches the probes. There may be none yet, if the recording adds those of files that appear.
    ///
    /// # Errors
    /// [`RecordError`]: the kernel refuses, no probe could be attached, or a signal arrives.
    pub fn attach(
        mut probes: Vec<PlannedProbe>,
        options: Options,
        planting: Planting<'_>,
    ) -> Result<Self, RecordError> {
        let may_wait = options.following.waits;
        let unfit = leave_out_unfit(&mut probes, may_wait, |probe| Ok(probe.find_shown()?))?;
        let cpus = wanted_cpus(options.engine.cpus.as_deref())?;
        let named = options.named.iter().copied().map(NamedProcess::open);
        let named = named.collect();
        let end_signal = planting
            .signals
            .begin()
            .map_err(KernelError::host("signals"))?;
        let request = AttachRequest {
            options: &options.engine,
            perf_target: options.target.perf_target(cpus.clone(), options.inherit)?,
            filter: options.target.filter(options.inherit),
            pmu: UprobePmu::find(),
            end_signal: &end_signal,
            may_wait,
            say: planting.say,
        };
        if let Some(version) = profiler_panic() {
            (planting.say)(&Caution::ProfilerPanic(version));
        }
        let has_none = probes.is_empty();
        let notes = note_sites(&probes, planting.say);
        let mut attached = open(probes, unfit, &request)?;
        let mut build_ids = BuildIds::default();
        build_ids.seek(SoughtFiles::new(&options.following, &attached.probes));
        for probe in &attached.probes {
            probe.program.free();
        }
        let waits = attached.engine.follows() && (has_none || may_wait);
        if has_none && !waits {
            return Err(attached.passed_over.unwrap_or(RecordError::NotFollowed));
        }
        if attached.probes.is_empty() && !waits {
            let refused = attached.refused.pop();
            return Err(refused.map_or(RecordError::Nothing, |refused| refused.error));
        }
        let shortfalls = Shortfalls::default();
        let refused_files = refused_files(&options.following, &attached.refused);
        remarks::note_refused(&refused_files, &shortfalls);
        let aggregation = options.engine.aggregation.as_ref();
        let spans = options.engine.slow_spans.as_ref();
        if let Some(spans) = spans.filter(|_| aggregation.is_none()) {
            remarks::note_short_spans(&shortfalls, spans, options.following.has_filter(), None);
        }
        let semaphores = Semaphores::start(
            &attached.probes,
            &request.filter,
            request.pmu,
            shortfalls.clone(),
        )?;
        let needs = needs_capabilities(&attached, semaphores.is_some());
        if let Some(reason) = needs.filter(|_| options.following.is_off) {
            return Err(RecordError::KeepsCapabilities(reason));
        }
        let (semaphores_started, started_semaphores) = channel();
        Ok(Self {
            options,
            semaphores,
            attached,
            build_ids,
            process_order: RecordOrder::default(),
            shortfalls,
            notes,
            cpus,
            named,
            end_signal,
            semaphores_started,
            started_semaphores,
            refused_files: refused_files.len(),
        })
    }

    /// Probes that the kernel refused.
    #[must_use]
    pub fn refused(&self) -> &[RefusedProbe] {
        &self.attached.refused
    }

    /// Probes that are attached.
    #[must_use]
    pub fn probes(&self) -> &[Arc<PlannedProbe>] {
        &self.attached.probes
    }

    /// CPUs recorded.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// What is attached.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.attached.engine
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

    /// What is read of the processes that run already.
    pub(super) fn wanted_of_running(&self) -> Wanted {
        Wanted {
            target: self.options.target.clone(),
            sample_type: self.attached.processes.attr.attr.id_type(),
            data: self.maps_data(),
            known: KnownFiles::new(&self.options.target, &self.options.following),
            sought: SoughtFiles::new(&self.options.following, &self.attached.probes),
        }
    }

    /// Whether mappings without code are recorded: perf reads unwind tables through them.
    pub(super) fn maps_data(&self) -> bool {
        self.attached.processes.maps_data()
    }

    /// Whether the kernel enables the events when the command is executed.
    pub(super) fn starts_at_exec(&self) -> bool {
        matches!(self.options.target, Target::Command(_))
    }

    /// What attaches further probes while recording, in a thread of its own.
    ///
    /// # Errors
    /// [`RecordError::NotFollowed`] with the perf engine; [`KernelError::Host`].
    pub(super) fn late_planter(&self) -> Result<LatePlanter, RecordError> {
        let filter = self.options.target.filter(self.options.inherit);
        let pmu = self.attached.pmu;
        let settings = LateSettings {
            options: self.options.engine.clone(),
            filter: filter.clone(),
            pmu,
            end_signal: self
                .end_signal
                .try_clone()
                .map_err(KernelError::host("signals"))?,
        };
        let engine = self.attached.late_planter(settings)?;
        let semaphores = self.semaphores.is_none().then(|| SemaphoreStart {
            filter,
            pmu,
            shortfalls: self.shortfalls.clone(),
            started: self.semaphores_started.clone(),
        });
        Ok(LatePlanter::new(engine, self.notes.as_ref(), semaphores))
    }

    /// Adds attached probes. They record nothing before [`enable_added`](Self::enable_added): first the trace must have their events, and the
    /// pipeline must know them ([`Pipeline::add`](crate::recording::Pipeline::add)).
    pub(super) fn add(&mut self, part: LatePart) -> AddedProbes {
        if let Ok(semaphores) = self.started_semaphores.try_recv() {
            self.semaphores = Some(semaphores);
        }
        self.attached.add(part)
    }

    /// Enables probes that were added.
    pub(super) fn enable_added(&self) -> Result<(), RecordError> {
        let enabled = self.attached.engine.enable();
        Ok(enabled.map_err(KernelError::operation(KernelOperation::Enable))?)
    }

    /// The head of the trace, with the probes that were added.
    pub(super) fn describe(&self) -> Result<TraceInfo, RecordError> {
        let mut info = host::describe(&self.options.producer, self.options.command_line.clone())?;
        let pmus = [(1, "software"), (2, "tracepoint")];
        let uprobe = self.attached.pmu.known();
        let uprobe = uprobe.map(|number| (number, "uprobe"));
        let pmus = pmus.into_iter().chain(uprobe).map(|(kind, name)| Pmu {
            kind,
            name: name.to_owned(),
        });
        info.pmus = pmus.collect();
        let attached = &self.attached;
        let probes = attached.probes.iter().zip(&attached.attrs);
        let planted = probes.map(|(probe, attr)| self.written(probe, &attr.attr));
        info.events = attached.in_order_of_trace(planted);
        info.tracepoints = attached.engine.formats(0);
        let waits = attached.waits.iter();
        info.tracepoints
            .extend(waits.map(|waits| waits.format.clone()));
        make_unique(&[], &mut info.events, &mut info.tracepoints);
        info.definitions = Some(self.definitions());
        Ok(info)
    }

    /// The event of the trace for one whose samples the engine makes.
    fn written(&self, probe: &PlannedProbe, event: &EventAttr) -> EventAttr {
        let mut event = event.clone();
        let unwinds = |graph: CallGraph| graph.unwinds() && !graph.keeps_copy(&probe.plan);
        if self.options.engine.graph.is_some_and(unwinds) {
            event.attr = StackUnwinder::written(event.attr, &probe.plan);
        }
        event
    }

    /// Whether all patterns that select a probe select any probe.
    fn is_by_any_pattern(&self, probe: &PlannedProbe) -> bool {
        let events = self.options.following.events.iter();
        let mut selecting = events
            .map(|event| &event.pattern)
            .filter(|pattern| pattern.matches(&probe.provider, &probe.name))
            .peekable();
        selecting.peek().is_some() && selecting.all(Pattern::is_any)
    }

    fn definitions(&self) -> Definitions {
        let Described { files, probes } = self.described(0);
        let engine = self.engine();
        Definitions {
            version: Definitions::VERSION,
            producer: self.options.producer.clone(),
            engine: engine.used().name().to_owned(),
            uncounted: engine.inexact().map(|reason| reason.to_string()),
            boot: host::boot_id(),
            files,
            probes,
        }
    }

    /// Probes that were added since the recording had `before` of them, for the trace.
    pub(super) fn describe_added(&self, before: usize) -> AddedEvents {
        let Described { files, probes } = self.described(before);
        let added = self.attached.probes.iter().zip(&self.attached.attrs);
        let added = added.skip(before);
        AddedEvents {
            events: added
                .map(|(probe, attr)| self.written(probe, &attr.attr))
                .collect(),
            tracepoints: self.attached.engine.formats(before),
            files,
            probes,
        }
    }

    /// All probes but the first ones.
    fn described(&self, before: usize) -> Described {
        let mut files: Vec<FileDefinition> = Vec::new();
        let mut probes = Vec::new();
        let attached = self.attached.probes.iter().zip(&self.attached.attrs);
        for (probe, attr) in attached.skip(before) {
            let file = FileDefinition {
                path: probe.path.clone(),
                build_id: probe.build_id,
                arch: probe.arch,
                by_any_pattern: self.is_by_any_pattern(probe),
            };
            let index = files
                .iter()
                // The probes of a file follow each other.
                .rposition(|known| *known == file)
                .unwrap_or_else(|| {
                    files.push(file);
                    files.len() - 1
                });
            probes.push(definition(probe, attr, index));
        }
        Described { files, probes }
    }
}

/// What is refused of files that nobody named.
fn refused_files(following: &Following, refused: &[RefusedProbe]) -> Vec<Refusal> {
    let refused = refused.iter().filter(|refused| refused.probe.is_found);
    let refused = refused.map(RefusedProbe::refusal);
    let all = following.refused_files.iter().cloned().chain(refused);
    all.collect::<Refusals>().into_vec()
}

/// Probes as the trace has them.
struct Described {
    files: Vec<FileDefinition>,
    /// The files of these are indexes in `files`.
    probes: Vec<ProbeDefinition>,
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
    probe.definition(sites.collect(), file)
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

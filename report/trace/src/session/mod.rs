//! An open trace with everything that is needed to show its samples.

pub(crate) mod deferred_chains;
pub mod event_name;
pub mod events;
pub(crate) mod found_files;
pub(crate) mod head;
pub mod hit;
pub mod hit_context;
pub mod ids;
pub mod joined_files;
pub mod loss_ledger;
pub mod paused_times;
pub mod pauses;
pub mod recorded_part;
pub mod resolver;
pub(crate) mod scan;
pub(crate) mod string_arguments;
pub(crate) mod string_place;

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use usdtrec_format::perf::{DeferredChain, Sample};
use usdtrec_format::schema::Schemas;
use usdtrec_format::trace::{
    Damage, DamageKind, FiredTrigger, Pause, Shortfall, TimeRange, Trace, TraceInfo,
};
use usdtrec_format::{HitWaits, NoContext, NoWaits};

use crate::added::added_argument::AddedArgument;
use crate::error::ReportError;
use crate::process::hit_names::HitNames;
use crate::process::log::ProcessLog;
use crate::process::mappers::{Mappers, RecordedFiles};
use crate::process::mappings::Mappings;
use crate::process::process_field::{ProcessFacts, ProcessField, ProcessSource, ProcessValue};
use crate::process::{Dso, DsoId, Processes, RecordedFacts};
use crate::session::deferred_chains::DeferredChains;
use crate::session::events::Events;
use crate::session::found_files::{FoundFiles, name, open_together};
use crate::session::head::{SitePlaces, TimedTarget, target_of, time_of};
use crate::session::hit::ParsedHit;
use crate::session::ids::{SampleIds, SampleTarget};
use crate::session::joined_files::{JoinedFiles, PlacedDamage};
use crate::session::loss_ledger::LossLedger;
use crate::session::pauses::Pauses;
use crate::session::scan::{SampleBlock, Scan};
use crate::symbols::Symbols;
use crate::symbols::search::{FetchDebug, FileView};
use crate::time_span::TimeSpan;
use crate::unwind::chain_address::is_signal_return;
use crate::unwind::tables::TraceTables;
use crate::wall_times::WallTimes;

/// What a session takes besides the trace.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The build-id cache to take symbols from.
    pub buildid_dir: Option<PathBuf>,
    /// Schemas that take precedence over what the trace says of its arguments.
    pub schemas: Schemas,
    /// Where files are that are not those at their paths.
    pub views: Vec<FileView>,
    /// Fetches files with debugging information that this host lacks.
    pub fetch: Option<Arc<dyn FetchDebug>>,
    /// Whether stacks have no frames of functions whose code was inlined.
    pub no_inline: bool,
    /// The span of time in which samples will be requested: samples beside it, and what processes did later, need not be there.
    pub time: Option<TimeSpan>,
    /// The expression that must be true of samples that will be requested: arguments that it compares with a string are strings, if nothing else says
    /// what they are.
    pub filter: Option<String>,
}

/// An open trace: its events with their decoders, its processes, its symbols, and where its samples are.
/// Nothing in it changes: samples are decoded from it in parallel.
#[derive(Debug)]
pub struct TraceSession {
    path: PathBuf,
    trace: Trace,
    wall_times: Option<WallTimes>,
    events: Events,
    ids: SampleIds,
    places: OnceLock<SitePlaces>,
    processes: Processes,
    mappers: Mappers,
    recorded: Arc<RecordedFiles>,
    /// Read when first requested: mappings may be many times as many as processes.
    mapped: OnceLock<Mapped>,
    sources: Sources,
    blocks: Vec<SampleBlock>,
    time: Option<TimeRange>,
    losses: LossLedger,
    /// By their numbers.
    shortfalls: BTreeMap<u32, Shortfall>,
    pauses: Pauses,
    fired: Option<FiredTrigger>,
    deferred: DeferredChains,
    damage: Vec<Damage>,
    /// Files of directories and globs that are not in the trace.
    left_out: Vec<PathBuf>,
    files: JoinedFiles,
    /// What finds the values of the arguments that were added to events; only the module `added` knows the type.
    added: Option<Arc<dyn Any + Send + Sync>>,
    /// Bytes of records of sample blocks that were read.
    read: AtomicU64,
}

/// Maximum number of shortfalls of a trace. A recorder writes at most 64.
const MAX_SHORTFALLS: usize = 1024;

/// What processes mapped, and the symbols and the unwind tables there.
#[derive(Debug)]
struct Mapped {
    mappings: Mappings,
    symbols: Symbols,
    unwind_tables: TraceTables,
}

impl Mapped {
    fn new(mappings: Mappings, trace: &Trace, sources: &Sources) -> Self {
        let buildid_dir = sources.buildid_dir.as_deref();
        let symbols = Symbols::new(buildid_dir, mappings.files());
        let symbols = symbols.with_recorded(trace).with_views(&sources.views);
        Self {
            symbols: symbols.with_fetch(sources.fetch.clone()),
            unwind_tables: TraceTables::new(buildid_dir, mappings.files()),
            mappings,
        }
    }
}

impl TraceSession {
    /// Opens a trace and reads its metadata. `path` is a file, a directory of `perf record --threads`, or a directory or a glob of files that are one
    /// trace together ([`open_files`](Self::open_files)).
    ///
    /// # Errors
    /// The errors of [`open_files`](Self::open_files).
    pub fn open(path: &Path, sources: &Sources) -> Result<Self, ReportError> {
        Self::open_files(&[path.to_owned()], sources)
    }

    /// Opens several files as one trace, in the order of their times: those of a recording with `--switch-output`, or of recordings of one host and boot
    /// one after the other. Each path may be what [`open`](Self::open) takes.
    ///
    /// # Errors
    /// [`ReportError::Read`] and [`ReportError::ReadOne`] if a file cannot be read at all, [`ReportError::Join`] if the files do not belong
    /// together.
    pub fn open_files(paths: &[PathBuf], sources: &Sources) -> Result<Self, ReportError> {
        let found = FoundFiles::find(paths)?;
        let name = match &*found.traces {
            [only] => only.clone(),
            _ => name(paths),
        };
        let mut session = Self::of_trace(&name, open_together(&found.traces)?, sources);
        session.left_out = found.left_out;
        Ok(session)
    }

    /// What messages call the files of a trace: the first one, and how many more there are.
    #[must_use]
    pub fn name_of(paths: &[PathBuf]) -> PathBuf {
        name(paths)
    }

    /// As [`open`](Self::open), for a regular file that is open; `path` is what it is called.
    ///
    /// # Errors
    /// [`ReportError::Read`] if the file cannot be read at all.
    pub fn from_file(file: File, path: &Path, sources: &Sources) -> Result<Self, ReportError> {
        Ok(Self::of_trace(path, Trace::from_file(file)?, sources))
    }

    /// A session of a trace, which may be a head without blocks.
    pub(crate) fn of_trace(path: &Path, trace: Trace, sources: &Sources) -> Self {
        let info = trace.info();
        let mut events = Events::new(info, &sources.schemas);
        let ids = SampleIds::new(&info.events, &events);
        let recorded = Arc::new(RecordedFiles::from_info(info));
        let mut scan = Scan::new(&trace, &events, &ids, sources.time.as_ref(), &recorded);
        let mut losses = LossLedger::new(&trace, scan.losses());
        let mut log = scan.log.into_log();
        let mut shortfalls = BTreeMap::new();
        learn_shortfalls(&mut shortfalls, log.take_shortfalls());
        losses.doubt(&trace, &shortfalls);
        let pauses = Pauses::new(log.take_pauses(), &ids, events.events.len());
        let fired = log.take_fired();
        string_arguments::learn(&mut events, &ids, &log.take_string_arguments());
        if let Some(filter) = &sources.filter {
            string_arguments::declare(&mut events, 0, filter);
        }
        let processes = Processes::new(&mut log);
        let mappers = log.take_mappers();
        let mapped = OnceLock::new();
        if !scan.is_repeatable {
            let mappings = Mappings::with_recorded(Arc::clone(&recorded)).settle(log);
            // It is empty.
            let _ = mapped.set(Mapped::new(mappings, &trace, sources));
        }
        let mut damage = [trace.damage(), &scan.damage].concat();
        if pauses.are_cut() {
            damage.push(Damage::new(0, DamageKind::ProcessRecords));
        }
        Self {
            path: path.to_owned(),
            events,
            ids,
            places: OnceLock::new(),
            mapped,
            mappers,
            recorded,
            sources: sources.clone(),
            processes,
            blocks: scan.blocks,
            time: scan.time,
            losses,
            shortfalls,
            pauses,
            fired,
            deferred: scan.deferred,
            damage,
            left_out: Vec::new(),
            files: JoinedFiles::of_trace(&trace),
            added: None,
            wall_times: WallTimes::from_trace(&trace),
            trace,
            read: AtomicU64::new(0),
        }
    }

    fn mapped(&self) -> &Mapped {
        self.mapped.get_or_init(|| {
            let log = scan::mappings(
                &self.trace,
                &self.events,
                &self.ids,
                self.sources.time.as_ref(),
                &self.recorded,
            );
            let mappings = Mappings::with_recorded(Arc::clone(&self.recorded)).settle(log);
            Mapped::new(mappings, &self.trace, &self.sources)
        })
    }

    /// Takes the head of a stream with events that were added. Former events and sites keep their numbers.
    pub(crate) fn add_events(&mut self, info: TraceInfo) {
        let former = self.events.events.len();
        self.events.extend(&info, &self.sources.schemas);
        self.ids = SampleIds::new(&info.events, &self.events);
        if let Some(filter) = &self.sources.filter {
            string_arguments::declare(&mut self.events, former, filter);
        }
        self.places = OnceLock::new();
        self.recorded = Arc::new(RecordedFiles::from_info(&info));
        self.trace.set_info(info);
        self.losses.doubt(&self.trace, &self.shortfalls);
        if let Some(mapped) = self.mapped.get_mut() {
            mapped.mappings.set_recorded(Arc::clone(&self.recorded));
            mapped.symbols.set_recorded(&self.trace);
        }
    }

    /// Replaces the arguments that were added to events, and what finds their values.
    pub(crate) fn set_added(
        &mut self,
        added: Option<Arc<dyn Any + Send + Sync>>,
        of_event: impl Fn(usize) -> Vec<AddedArgument>,
    ) {
        self.added = added;
        self.events.set_added(of_event);
    }

    /// What finds the values of the arguments that were added to events.
    pub(crate) fn added(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.added.as_deref()
    }

    /// Adds to a session of a stream what happened to processes after all that is known.
    pub(crate) fn learn(&mut self, mut log: ProcessLog) {
        learn_shortfalls(&mut self.shortfalls, log.take_shortfalls());
        self.losses.doubt(&self.trace, &self.shortfalls);
        self.fired = self.fired.take().or_else(|| log.take_fired());
        let strings = log.take_string_arguments();
        string_arguments::learn(&mut self.events, &self.ids, &strings);
        self.processes.learn(&mut log);
        self.mappers.append(log.take_mappers());
        self.mapped();
        if let Some(mapped) = self.mapped.get_mut() {
            mapped.mappings.learn(log);
            mapped.symbols.extend(mapped.mappings.files());
            mapped.unwind_tables.extend(mapped.mappings.files());
        }
    }

    /// Forgets from time to time what is of no use for samples after a time. Numbers of names, files and functions that were given
    /// out before mean nothing after that, but for the names of `hits`, whose numbers are replaced.
    pub(crate) fn forget_before<'h>(
        &mut self,
        time: u64,
        hits: impl FnOnce() -> Vec<HitNames<'h>>,
    ) {
        self.deferred.forget_before(time);
        let Some(mapped) = self.mapped.get_mut() else {
            return;
        };
        let files = self
            .processes
            .forget_before(&mut mapped.mappings, time, hits);
        if let Some(files) = files {
            mapped.symbols.keep(&files);
            mapped.unwind_tables.keep(&files);
        }
    }

    /// Adds to a session of a stream a time in which probes were detached.
    pub(crate) fn learn_pause(&mut self, pause: &Pause) {
        self.pauses.learn(pause, &self.ids);
    }

    /// Adds to a session of a stream the time of samples that were read.
    pub(crate) fn learn_time(&mut self, samples: TimeRange) {
        let known = self.time.get_or_insert(samples);
        known.first = known.first.min(samples.first);
        known.last = known.last.max(samples.last);
    }

    /// Adds to a session of a stream a part of call chains that was written after the samples.
    pub(crate) fn learn_chain(&mut self, chain: &DeferredChain<'_>) {
        self.deferred.add(chain);
    }

    /// Parts of call chains that were written after the samples.
    pub(crate) const fn deferred_chains(&self) -> &DeferredChains {
        &self.deferred
    }

    /// Notes what [`forget_before`](Self::forget_before) needs.
    pub(crate) fn note_living(&mut self) {
        self.processes.note_living();
    }

    /// Bytes of records in which samples are that may be requested, before compression.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }

    /// Bytes of them that were read so far, by all questions together: how far one is.
    #[must_use]
    pub fn record_bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Counts a block that was read.
    pub(crate) fn note_read(&self, block: &SampleBlock) {
        self.read.fetch_add(block.bytes, Relaxed);
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The trace's head.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        self.trace.info()
    }

    /// The time of day of its times; `None` if the trace does not say.
    pub const fn wall_times(&self) -> Option<&WallTimes> {
        self.wall_times.as_ref()
    }

    /// Its events and sites.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Its processes.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Whether stacks have frames of functions whose code was inlined.
    pub const fn shows_inlined(&self) -> bool {
        !self.sources.no_inline
    }

    /// Its symbols.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.mapped().symbols
    }

    /// The unwind tables of its files.
    pub(crate) fn unwind_tables(&self) -> &TraceTables {
        &self.mapped().unwind_tables
    }

    /// Whether handlers of signals return to a file offset.
    pub(crate) fn is_signal_return(&self, file: DsoId, offset: u64) -> bool {
        match self.symbols().find(file, offset) {
            Some(symbol) if symbol.offset > 0 => return false,
            Some(symbol) if is_signal_return(&symbol.name) => return true,
            _ => {}
        }
        let code = self.unwind_tables().code(file, offset);
        code.is_some_and(|code| code.is_signal_return())
            || self.mappings().file(file).is_some_and(Dso::is_vdso)
    }

    /// Whether the call chains of an event are found by frame pointers, by a program or by the kernel.
    pub(crate) fn has_call_chains(&self, target: SampleTarget) -> bool {
        let event = self.events.events.get(target.event as usize);
        event.is_some_and(|event| event.attr.sample_max_stack > 0)
    }

    /// Whether the call chains of an event are found by frame pointers, and end where one is 0 if nothing else is said.
    pub(crate) fn follows_frame_pointers(&self, target: SampleTarget) -> bool {
        let event = self.events.events.get(target.event as usize);
        let event = event.filter(|_| self.has_call_chains(target));
        let probes = self.info().definitions.as_ref().map(|all| &all.probes);
        let probe = event
            .zip(probes)
            .and_then(|(event, probes)| probes.get(event.probe?));
        // The kernel does not say why its chains end.
        probe.is_some_and(|probe| probe.plan.raw.is_some())
    }

    /// The mappings of its processes.
    #[must_use]
    pub fn mappings(&self) -> &Mappings {
        &self.mapped().mappings
    }

    /// The processes that mapped the files that were recorded.
    pub(crate) const fn mappers(&self) -> &Mappers {
        &self.mappers
    }

    /// The files that were recorded.
    pub(crate) const fn recorded_files(&self) -> &Arc<RecordedFiles> {
        &self.recorded
    }

    /// The errors found while opening.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// What had the recorder write the file, or end; `None` if nothing but its end had.
    #[must_use]
    pub const fn fired(&self) -> Option<&FiredTrigger> {
        self.fired.as_ref()
    }

    /// The files that it is made of; none if it is a single one.
    #[must_use]
    pub const fn files(&self) -> &JoinedFiles {
        &self.files
    }

    /// The unfinished flush at the end of the last file, if there is one.
    #[must_use]
    pub fn uncommitted(&self) -> Option<PlacedDamage> {
        let damage = self.trace.uncommitted()?;
        Some(self.files.place(damage))
    }

    /// Files of directories and globs that are not in the trace, because they are no traces or are empty.
    #[must_use]
    pub fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// What the recorder found not to work in recorded processes.
    pub fn shortfalls(&self) -> impl Iterator<Item = &Shortfall> {
        self.shortfalls.values()
    }

    /// When probes were detached; of a stream, as far as it was read.
    #[must_use]
    pub const fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// From the earliest to the latest time of all samples; `None` without samples.
    #[must_use]
    pub const fn time(&self) -> Option<TimeRange> {
        self.time
    }

    /// Whether all of the trace can be read; else only what is needed for a part of its time.
    pub const fn is_whole(&self) -> bool {
        self.sources.time.is_none()
    }

    /// The blocks that hold samples of the time that is selected, in the order of the file.
    pub fn blocks(&self) -> &[SampleBlock] {
        &self.blocks
    }

    /// What was lost.
    #[must_use]
    pub const fn losses(&self) -> &LossLedger {
        &self.losses
    }

    /// A sample's event and time, from the body of its record.
    #[inline]
    pub(crate) fn time_of(&self, body: &[u8]) -> Option<TimedTarget> {
        time_of(body, &self.events, &self.ids)
    }

    /// As [`time_of`](Self::time_of), of a sample that is as long as its event requires: [`sample`](Self::sample) has it.
    #[inline]
    pub(crate) fn time_of_whole(&self, body: &[u8]) -> Option<TimedTarget> {
        let timed = self.time_of(body)?;
        let event = self.events.events.get(timed.target.event as usize)?;
        event.layout.fits(body).then_some(timed)
    }

    /// A sample with its event, from the body of its record. `None` if it belongs to no event of
    /// the trace or is shorter than its event needs.
    #[inline(always)]
    pub fn sample<'a>(&self, body: &'a [u8]) -> Option<ParsedHit<'a>> {
        let target = target_of(body, &self.events, &self.ids)?;
        let event = self.events.events.get(target.event as usize)?;
        let sample = event.layout.parse(body)?;
        Some(ParsedHit { target, sample })
    }

    /// The thread of a hit, and how long it has waited.
    #[inline]
    pub fn hit_waits(&self, target: SampleTarget, sample: &Sample<'_>) -> HitWaits {
        let event = self.events.events.get(target.event as usize);
        HitWaits {
            tid: sample.tid,
            waits: event.map_or(Err(NoWaits::NotRecorded), |event| event.waits_of(sample)),
        }
    }

    /// Whether some events say how long their threads have waited.
    pub fn has_waits(&self) -> bool {
        let mut events = self.events.events.iter();
        events.any(|event| event.thread_waits.is_some())
    }

    /// Whether the trace may have a field of the process of a hit.
    pub fn has_of_process(&self, field: &ProcessField) -> bool {
        (field.is_in)(&self.processes, self.info())
    }

    /// A field about a process; else what is shown in its place.
    pub fn process_value(
        &self,
        field: &ProcessField,
        facts: &ProcessFacts,
    ) -> Result<ProcessValue<'_>, &'static str> {
        let event = facts
            .event
            .and_then(|at| self.events.events.get(at as usize));
        (field.get)(ProcessSource {
            processes: &self.processes,
            facts,
            build_id: event.and_then(|event| event.build_id.as_deref()),
        })
    }

    /// What the trace says of the process of a sample, but for what was read of it at another time.
    #[inline]
    pub(crate) fn facts_of(&self, sample: &Sample<'_>, recorded: RecordedFacts) -> ProcessFacts {
        let event = self.ids.get(sample.id).or(self.ids.only);
        let event = event.map(|target| target.event);
        let of = event.and_then(|at| self.events.events.get(at as usize));
        ProcessFacts {
            recorded,
            uid: sample.uid(),
            event,
            thread_context: of.map_or(Err(NoContext::NotRecorded), |of| of.context_of(sample)),
            thread_waits: of.map_or(Err(NoWaits::NotRecorded), |of| of.waits_of(sample)),
        }
    }

    /// The event and the site of a sample id.
    pub fn target(&self, id: u64) -> Option<SampleTarget> {
        self.ids.get(id)
    }

    /// The event of a sample id.
    pub(crate) fn event_of(&self, id: u64) -> Option<usize> {
        self.ids.get(id).map(|target| target.event as usize)
    }

    /// What a sample counts for, as perf weighs it.
    pub fn weight(&self, target: SampleTarget, sample: &Sample<'_>) -> u64 {
        let event = self.events.events.get(target.event as usize);
        event.map_or(1, |event| event.weight(sample))
    }

    /// Whether samples may have addresses of strings without the strings.
    pub fn may_lack_strings(&self) -> bool {
        let mut sites = self.events.sites.iter();
        sites.any(|site| !site.unread_arguments.is_empty())
    }

    /// The site that a sample hit: the one of its id; else of those of its event the one at its address.
    #[inline]
    pub fn site_of(&self, target: SampleTarget, sample: &Sample<'_>) -> Option<usize> {
        match target.site {
            Some(site) => Some(site as usize),
            None => self.site_at(target, sample),
        }
    }

    #[cold]
    fn site_at(&self, target: SampleTarget, sample: &Sample<'_>) -> Option<usize> {
        let sites = self.events.events.get(target.event as usize)?.sites.clone();
        if sites.len() == 1 {
            return Some(sites.start);
        }
        let places = self.places.get_or_init(|| SitePlaces::new(&self.events));
        places.at_address(target.event, sample.ip)?.or_else(|| {
            let mappings = self.mappings();
            let mapping = mappings.mapping(sample.pid, sample.ip, sample.time)?;
            places.at_offset(target.event, mapping.file_offset(sample.ip))
        })
    }
}

/// Adds shortfalls. Of two with the same number, the last one holds. Recordings one after the other may have found the same.
fn learn_shortfalls(known: &mut BTreeMap<u32, Shortfall>, new: Vec<Shortfall>) {
    for shortfall in new {
        let mut same = shortfall.clone();
        let is_same = |known: &Shortfall| {
            same.number = known.number;
            *known == same
        };
        if known.values().any(is_same) {
            continue;
        }
        if known.len() < MAX_SHORTFALLS || known.contains_key(&shortfall.number) {
            known.insert(shortfall.number, shortfall);
        }
    }
}

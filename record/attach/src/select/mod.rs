//! From patterns to probes: which sites of which files, checked, with their operands.

pub mod argument_list;
mod candidates;
mod kept_pages;
pub mod probe;
pub mod program;
pub mod refusal;
pub mod shared_instruction;
pub mod trace_room;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::{CheckError, ElfError, FileId, FileState, ObjectFile};
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_buildid_cache::{Indexed, chosen_build, live_directory, locate};
use usdtrec_format::expr::{Capture, Expr};
use usdtrec_format::schema::{Description, Disagreement, Schemas};
use usdtrec_format::trace::Limit;
use usdtrec_format::{Arch, Binary, CapturePlan, Operand, Pattern, Probe, Site, Uprobes};
use usdtrec_kernel::nop5;

use self::candidates::{FoundFile, FoundFiles};
use self::probe::PlannedSite;
use self::probe::add_debug_info;
use self::refusal::NoProbe;
use crate::error::RecordError;
use crate::places::{self, Account, Places};
use crate::select::candidates::{Candidate, KnownFiles, matching};
use crate::select::probe::PlannedProbe;
use crate::select::program::Program;
use crate::select::refusal::{Refusal, RefusalReason, Refusals};
use crate::select::shared_instruction::with_most_arguments;
use crate::select::trace_room::refuse_without_room;
pub use usdtrec_kernel::host::identity::is_same_inode;

/// Maximum length of an event's name, bytes: with the number that makes it unique, a trace takes it.
const MAX_NAME: usize = Limit::EventName.max() as usize - 16;

/// An event to record: its probes, and what is recorded of their hits.
#[derive(Clone, Debug)]
pub struct EventSelector {
    /// The probes.
    pub pattern: Pattern,
    /// Filter of the hits; `None` for all hits.
    pub filter: Option<Expr>,
    /// The argument list; `None` without one.
    pub list: Option<Vec<Capture>>,
}

/// What to select, and where to look for it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The events.
    pub events: &'a [EventSelector],
    /// The probes in files, according to the cache. This is a hint: the files' own notes are read before a probe is attached.
    pub indexed: Vec<Indexed>,
    /// Files of the traced processes, or of all that run, and of the command.
    pub files: Vec<Shared<ObjectFile>>,
    /// Those of them that were found in processes which nobody named, with these processes. What is planted in them is limited, and what is wrong with
    /// them is no error.
    pub found: HashMap<FileId, Vec<u32>>,
    /// What is planted in such files.
    pub places: &'a Places,
    /// Whether `files` has what all processes of this host run.
    pub is_host: bool,
    /// The traced processes and threads, if they are named. The files that they map take precedence over the cache, and paths are resolved
    /// below their root directories.
    pub processes: &'a [u32],
    /// Attach even if a check of the file fails, or its pages cannot be kept in the page cache.
    pub force: bool,
    /// Whether programs may start while the probes are attached: those that then copy their code are refused.
    pub starts_programs: bool,
    /// Whether a pattern without a path may select no probe yet. An exact one of a provider that is known may not.
    pub may_wait: bool,
    /// Names and types of arguments.
    pub schemas: &'a Schemas,
}

/// The result of a selection.
#[derive(Debug, Default)]
pub struct Selection {
    /// Probes to attach.
    pub probes: Vec<PlannedProbe>,
    /// Probes that will not be attached.
    pub refusals: Vec<Refusal>,
    /// Those of files that were found.
    pub refused_files: Vec<Refusal>,
    /// Disagreements between schemas and notes.
    pub disagreements: Vec<Disagreement>,
    /// Files named by path in the patterns; the caller may index them.
    pub named: Vec<Shared<ObjectFile>>,
    /// Patterns that select no probe yet.
    pub waiting: Vec<NoProbe>,
    /// Patterns without a probe in the files that the traced processes map. They were looked up in the indexed files.
    pub not_mapped: Vec<String>,
    /// Whether sites are 5-byte nops, which some kernels replace by calls, and a trial on a process of our own found that this kernel
    /// handles them safely.
    pub tried_nops: bool,
}

/// Selects probes and checks their files and sites.
///
/// # Errors
/// [`RecordError::NoProbe`] if a pattern selects no probe, and may not wait; [`RecordError::Build`] if its build-id is not that of one build; [`RecordError::Refused`] if none of the selected probes can be attached;
/// [`RecordError::Find`], [`RecordError::File`] and [`RecordError::FileOfProcess`] if the file of a pattern cannot be opened.
pub fn select(request: Request<'_>) -> Result<Selection, RecordError> {
    let mut selector = Selector {
        processes: request.processes,
        is_host: request.is_host,
        may_wait: request.may_wait,
        force: request.force,
        starts_programs: request.starts_programs,
        ..Selector::new(request.schemas)
    };
    let files = request.files.iter().filter_map(Candidate::of_file);
    let files: Vec<Candidate> = files.collect();
    let paths = request.events.iter().map(|event| event.pattern.path());
    let named = paths.map(|path| path.map(|path| named(path, request.processes)).transpose());
    let named: Vec<Option<Vec<Shared<ObjectFile>>>> = named.collect::<Result<_, _>>()?;
    let mut ids: HashSet<FileId> = files.iter().filter_map(Candidate::id).collect();
    let by_path = named.iter().flatten().flatten();
    let by_path = by_path.filter(|file| ids.insert(file.id()));
    let by_path: Vec<Candidate> = by_path.filter_map(Candidate::of_file).collect();
    let ids: HashSet<FileId> = named
        .iter()
        .flatten()
        .flatten()
        .map(|file| file.id())
        .collect();
    let found = files.iter().filter_map(|candidate| {
        let file = candidate.file.as_deref()?;
        let pids = request
            .found
            .get(&file.id())
            .filter(|_| !ids.contains(&file.id()))?;
        let binary = &candidate.binary;
        Some(FoundFile { file, binary, pids })
    });
    let patterns = request.events.iter().map(|event| &event.pattern);
    let patterns: Vec<&Pattern> = patterns.filter(|one| one.path().is_none()).collect();
    selector.found = FoundFiles::new(found, &patterns, request.places);
    let indexed = present(request.indexed);
    let indexed: Vec<Candidate> = indexed.into_iter().map(Candidate::indexed).collect();
    let known = KnownFiles {
        mapped: &files,
        by_path: &by_path,
        is_of_processes: !request.processes.is_empty(),
        may_wait: request.may_wait,
    };
    let open = known.probes();
    // What one pattern selects is searched for all others, too: it is not looked at again when a process maps it.
    let (shared, alone): (Vec<_>, Vec<_>) = indexed.iter().partition(|file| {
        patterns
            .iter()
            .any(|pattern| known.attaches(pattern, file, &open))
    });
    for (event, named) in request.events.iter().zip(named) {
        selector.event = Some(event);
        let pattern = &event.pattern;
        if let Some(named) = named {
            let candidates: Vec<_> = named.iter().filter_map(Candidate::of_file).collect();
            selector.selection.named.extend(named);
            selector.pattern(pattern, candidates.iter())?;
            continue;
        }
        let waiting = selector.selection.waiting.len();
        let searched = files.iter().chain(&by_path).chain(shared.iter().copied());
        // The others have similar names at most.
        let others = alone.iter().copied();
        let others = others.filter(|file| !file.has(pattern));
        selector.pattern(pattern, searched.chain(others))?;
        let is_waiting = selector.selection.waiting.len() > waiting;
        if !request.processes.is_empty() && !is_waiting && !known.has(pattern) {
            let text = pattern.text().to_owned();
            selector.selection.not_mapped.push(text);
        }
    }
    let mut selection = selector.finish();
    let had_probes = !selection.probes.is_empty();
    selection.keep_pages(request.force);
    selection
        .refusals
        .extend(refuse_without_room(&mut selection.probes));
    // A file of some process of the host does not keep others from being recorded.
    let is_named = |event: &EventSelector| event.pattern.path().is_some();
    let is_sought =
        !request.may_wait || !request.processes.is_empty() || request.events.iter().all(is_named);
    if had_probes && selection.probes.is_empty() && is_sought {
        return Err(RecordError::Refused(selection.refusals));
    }
    selection.tried_nops = nop5::was_tried_and_sound();
    Ok(selection)
}

/// What to select in a file that appeared while recording.
pub struct FileRequest<'a> {
    /// Patterns of probes.
    pub events: &'a [EventSelector],
    /// Names and types of arguments.
    pub schemas: &'a Schemas,
    /// Whether probes are attached where that may harm programs (`--force`).
    pub force: bool,
    /// How much may be attached.
    pub places: &'a Places,
    /// The account of the process that maps it; `None` without limits.
    pub account: Option<Account>,
}

/// Selects the probes of one file that appeared while recording. Without probes, the refusals say why.
pub fn select_in_file(file: &Shared<ObjectFile>, request: &FileRequest<'_>) -> Selection {
    let events = request.events;
    let mut selector = Selector {
        force: request.force,
        starts_programs: true,
        is_late: true,
        ..Selector::new(request.schemas)
    };
    let Some(candidate) = Candidate::of_file(file) else {
        return selector.finish();
    };
    if let Some(account) = request.account {
        let patterns: Vec<&Pattern> = events.iter().map(|event| &event.pattern).collect();
        let binary = &candidate.binary;
        selector.found = FoundFiles::of_file(file.id(), binary, &patterns, account, request.places);
    }
    for event in events {
        selector.event = Some(event);
        // A pattern whose probes are all refused is no error: others may select some.
        if let Err(RecordError::Refused(new)) =
            selector.pattern(&event.pattern, std::iter::once(&candidate))
        {
            new.into_iter()
                .for_each(|refusal| selector.refusals.add(refusal));
        }
    }
    let mut selection = selector.finish();
    selection.keep_pages(request.force);
    selection
}

/// Removes older builds of a path if the file that is now at the path is indexed.
fn present(mut indexed: Vec<Indexed>) -> Vec<Indexed> {
    let current = indexed.iter().filter(|indexed| indexed.is_current());
    let current: HashSet<PathBuf> = current.map(|indexed| indexed.binary.path.clone()).collect();
    indexed.retain(|indexed| indexed.is_current() || !current.contains(&indexed.binary.path));
    indexed
}

/// Opens the files of a path: if processes are traced, below the root directory of each of them.
fn named(path: &Path, processes: &[u32]) -> Result<Vec<Shared<ObjectFile>>, RecordError> {
    let wrong = |error: ElfError| RecordError::File {
        path: path.to_owned(),
        error,
    };
    let located = locate(path).map_err(RecordError::Find)?;
    let located = std::path::absolute(located).map_err(|error| wrong(error.into()))?;
    // A path through /proc already names the process.
    let below = (!located.starts_with("/proc")).then(|| located.strip_prefix("/").ok());
    let below = below.flatten();
    let unknown = Reader::of_unknown(Patience::Usual);
    let mut found: Vec<Shared<ObjectFile>> = Vec::new();
    let mut missing = None;
    for (pid, below) in processes.iter().filter_map(|pid| Some((pid, below?))) {
        let inside = live_directory(*pid).join("root").join(below);
        let reader = Reader::of_process(pid.cast_signed(), Patience::Usual);
        match ObjectFile::open_foreign(&inside, reader) {
            Ok(file) => found.push(Shared::new(file)),
            Err(error) => _ = missing.get_or_insert((*pid, error)),
        }
    }
    if found.is_empty() {
        match (missing, ObjectFile::open_foreign(&located, unknown)) {
            (None, Ok(file)) => found.push(Shared::new(file)),
            (None, Err(error)) => return Err(wrong(error)),
            (Some((pid, error)), opened) => {
                return Err(RecordError::FileOfProcess {
                    path: path.to_owned(),
                    pid,
                    error,
                    is_outside: opened.is_ok(),
                });
            }
        }
    }
    found.sort_by_key(|file| file.id());
    found.dedup();
    Ok(found)
}

/// The state of a selection.
struct Selector<'a> {
    processes: &'a [u32],
    is_host: bool,
    may_wait: bool,
    force: bool,
    starts_programs: bool,
    /// Whether the recording has begun, so that what is wrong with one probe must not keep out others.
    is_late: bool,
    /// The symbols by which files are known to copy their code.
    copying: HashMap<FileId, Option<String>>,
    schemas: &'a Schemas,
    /// The event that is being selected.
    event: Option<&'a EventSelector>,
    /// The sites selected so far, with their arguments: a file may have several names, and patterns may overlap.
    seen: HashSet<(FileId, Option<u64>, String, String)>,
    /// Number of them at each instruction of files that were found.
    at_instruction: HashMap<(FileId, u64), usize>,
    /// Files that were opened because the cache lists probes for them.
    open: HashMap<PathBuf, Result<Rc<Opened>, RefusalReason>>,
    /// The open files. Files that are one inode have one program.
    programs: HashMap<FileId, Shared<Program>>,
    found: FoundFiles,
    /// Refusals of the pattern that is being selected, and of those before.
    new: Refusals,
    refusals: Refusals,
    selection: Selection,
}

/// An open file, and its own probes.
struct Opened {
    program: Shared<Program>,
    binary: Binary,
}

impl<'a> Selector<'a> {
    /// Of no process, before the recording; it has selected nothing.
    fn new(schemas: &'a Schemas) -> Self {
        Self {
            processes: &[],
            is_host: false,
            may_wait: false,
            force: false,
            starts_programs: false,
            is_late: false,
            copying: HashMap::new(),
            schemas,
            event: None,
            seen: HashSet::new(),
            at_instruction: HashMap::new(),
            open: HashMap::new(),
            programs: HashMap::new(),
            found: FoundFiles::default(),
            new: Refusals::default(),
            refusals: Refusals::default(),
            selection: Selection::default(),
        }
    }

    fn finish(self) -> Selection {
        let mut selection = self.selection;
        let refusals = self.refusals.into_vec().into_iter();
        let (of_found, others) = refusals.partition(|refusal| self.found.has_path(&refusal.path));
        (selection.refused_files, selection.refusals) = (of_found, others);
        add_debug_info(&mut selection.probes);
        selection
    }

    fn pattern<'c>(
        &mut self,
        pattern: &Pattern,
        candidates: impl Iterator<Item = &'c Candidate> + Clone,
    ) -> Result<(), RecordError> {
        let build = chosen_build(
            pattern,
            candidates.clone().map(|candidate| &candidate.binary),
        )?;
        let is_chosen = |candidate: &&Candidate| {
            let is_build = build.is_none() || candidate.binary.build_id == build;
            is_build && candidate.has(pattern)
        };
        let (mut matched, mut planned) = (false, false);
        let mut all_found = true;
        for candidate in candidates.clone().filter(is_chosen) {
            matched = true;
            all_found &= candidate.is_in(&self.found);
            planned |= self.candidate(pattern, candidate);
        }
        let new = std::mem::take(&mut self.new).into_vec();
        if !matched {
            let binaries = candidates.map(|candidate| &candidate.binary);
            let mut probes = binaries.clone().flat_map(|binary| &binary.probes);
            // A name that a known provider has not is taken for a mistake.
            let is_mistake = pattern.path().is_some()
                || pattern.is_exact()
                    && probes.any(|probe| pattern.matches_provider(&probe.provider));
            let missing = NoProbe::new(pattern, self.processes, self.is_host, binaries);
            if !self.may_wait || is_mistake {
                return Err(missing.into());
            }
            self.selection.waiting.push(missing);
            return Ok(());
        }
        if !planned {
            let no_matter = |refusal: &Refusal| refusal.is_stale() || all_found;
            let may_come = pattern.path().is_none() && new.iter().all(no_matter);
            if !self.may_wait || !may_come {
                return Err(RecordError::Refused(new));
            }
            // What is indexed is a hint, and what is wrong with a file that any user maps ends no recording: without these there would be no probe yet.
            let none = std::iter::empty();
            let missing = NoProbe::new(pattern, self.processes, self.is_host, none);
            self.selection.waiting.push(missing);
        }
        // What the cache has of a file that is another one now matters only if nothing else is selected.
        for refusal in new.into_iter().filter(|one| !planned || !one.is_stale()) {
            self.refusals.add(refusal);
        }
        Ok(())
    }

    /// Selects the probes of a file that match a pattern. Returns whether at least one site is selected, now or earlier.
    fn candidate(&mut self, pattern: &Pattern, candidate: &Candidate) -> bool {
        let refusal = candidate.file.as_ref();
        let refusal = refusal.and_then(|file| self.found.refusal(file.id()));
        let opened = match refusal.map_or_else(|| self.opened(candidate), Err) {
            Ok(opened) => opened,
            Err(reason) => {
                for probe in candidate.matching(pattern) {
                    self.refuse(probe, &candidate.binary.path, reason.clone());
                }
                return false;
            }
        };
        if let Some(symbol) = self.copying_symbol(&opened) {
            for probe in candidate.matching(pattern) {
                let reason = RefusalReason::CopiesCode {
                    symbol: symbol.clone(),
                };
                self.refuse(probe, &candidate.binary.path, reason);
            }
            return false;
        }
        let mut forged = HashSet::new();
        // What an open file has is its own.
        let indexed = candidate
            .matching(pattern)
            .filter(|_| candidate.file.is_none());
        let own = opened.probes();
        for probe in indexed {
            let own = own.get(&(probe.provider.as_str(), probe.name.as_str()));
            if let Err(reason) = opened.has_sites(own.copied(), probe)
                && !self.force
            {
                forged.insert((&probe.provider, &probe.name));
                self.refuse(probe, &candidate.binary.path, reason.into());
            }
        }
        let mut planned = false;
        for probe in matching(&opened.binary, pattern) {
            if !forged.contains(&(&probe.provider, &probe.name)) {
                planned |= self.probe(&opened, probe);
            }
        }
        planned
    }

    /// The symbol by which a program is known to copy its code when it starts, unless that does not matter.
    fn copying_symbol(&mut self, opened: &Opened) -> Option<String> {
        if self.force || !self.starts_programs {
            return None;
        }
        let file = opened.program.file();
        let known = self.copying.entry(file.id());
        known
            .or_insert_with(|| self::program::copying_symbol(file))
            .clone()
    }

    /// The file of a candidate, opened and checked once.
    fn opened(&mut self, candidate: &Candidate) -> Result<Rc<Opened>, RefusalReason> {
        let path = &candidate.binary.path;
        if let Some(file) = &candidate.file {
            file.check_file(candidate.binary.build_id)?;
            return Ok(Rc::new(Opened {
                program: self.program(file),
                binary: candidate.binary.clone(),
            }));
        }
        if let Some(known) = self.open.get(path) {
            return known.clone();
        }
        let force = self.force;
        let opened = || {
            if candidate.state == FileState::Gone {
                return Err(RefusalReason::Gone);
            }
            let unknown = Reader::of_unknown(Patience::Usual);
            let file = ObjectFile::open_foreign(path, unknown)?;
            match file.check_file(candidate.binary.build_id) {
                Err(CheckError::Changed { .. }) if force => {}
                checked => checked?,
            }
            let binary = file.binary()?;
            Ok((Shared::new(file), binary))
        };
        let opened = opened().map(|(file, binary)| {
            Rc::new(Opened {
                program: self.program(&file),
                binary,
            })
        });
        self.open.insert(path.clone(), opened.clone());
        opened
    }

    /// The program of an open file.
    fn program(&mut self, file: &Shared<ObjectFile>) -> Shared<Program> {
        if let Some(known) = self.programs.get(&file.id()) {
            return Shared::clone(known);
        }
        let mut programs = self.programs.values();
        let same = programs.find(|program| is_same_inode(file, program.file()));
        let program = match same {
            Some(same) => Shared::clone(same),
            None => Shared::new(Program::new(Shared::clone(file))),
        };
        if let Some(place) = self.found.take_place(file.id()) {
            program.hold(place);
        }
        self.programs.insert(file.id(), Shared::clone(&program));
        program
    }

    /// Selects a probe. Returns whether at least one of its sites is selected, now or earlier.
    fn probe(&mut self, opened: &Opened, probe: &Probe) -> bool {
        let arch = opened.binary.arch;
        let sites = probe.sites.iter().cloned();
        let sites: Vec<PlannedSite> = sites.map(|site| PlannedSite::new(site, arch)).collect();
        let sites = with_most_arguments(sites);
        let description = self.describe(probe, &sites, arch);
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        let mut known = false;
        for planned in sites {
            let site = &planned.site;
            let id = opened.program.file().id();
            let key = (id, site.offset, probe.event(), site.args.clone());
            if self.seen.contains(&key) {
                known = true;
                continue;
            }
            let checked = opened.check(site).err().filter(|_| !self.force);
            let never = || {
                opened
                    .never(site)
                    .or_else(|| self.beyond_limits(&key, site))
            };
            match checked.or_else(never) {
                Some(reason) => refused.push(reason),
                None => {
                    let at = self.at_instruction.entry((key.0, site.pc)).or_default();
                    *at += 1;
                    self.seen.insert(key);
                    accepted.push(planned);
                }
            }
        }
        for reason in refused {
            self.refuse(probe, opened.program.file().path(), reason);
        }
        let any = known || !accepted.is_empty();
        self.add(opened, probe, description, accepted);
        any
    }

    /// Why no trace can have the events of a site, or would have too many of a file that was found.
    fn beyond_limits(
        &self,
        (file, _, event, _): &(FileId, Option<u64>, String, String),
        site: &Site,
    ) -> Option<RefusalReason> {
        if event.len() > MAX_NAME {
            return Some(RefusalReason::LongName {
                bytes: event.len(),
                most: MAX_NAME,
            });
        }
        let at = self.at_instruction.get(&(*file, site.pc));
        let is_full = at.is_some_and(|at| *at >= places::AT_INSTRUCTION);
        (is_full && self.found.has(*file)).then_some(RefusalReason::SharedInstruction {
            pc: site.pc,
            most: places::AT_INSTRUCTION,
        })
    }

    /// What schemas say of a probe with these sites. Disagreements with its notes are added to the selection.
    fn describe(
        &mut self,
        probe: &Probe,
        sites: &[PlannedSite],
        arch: Option<Arch>,
    ) -> Description {
        let operands: Vec<&[Operand]> = sites.iter().map(|site| &*site.operands).collect();
        let mut description = self.schemas.describe_operands(probe, &operands, arch);
        let disagreements = description.disagreements.drain(..);
        self.selection.disagreements.extend(disagreements);
        description
    }

    /// Adds a probe with sites that are not selected yet.
    fn add(
        &mut self,
        opened: &Opened,
        probe: &Probe,
        description: Description,
        sites: Vec<PlannedSite>,
    ) {
        let schema = description.choice.schema;
        let schema = schema.unwrap_or_default();
        if sites.is_empty() {
            return;
        }
        self.selection.probes.push(PlannedProbe {
            provider: probe.provider.clone(),
            name: probe.name.clone(),
            description: schema.description,
            needs: schema.needs,
            call: schema.call,
            lock: schema.lock,
            telemetry: schema.telemetry,
            program: Shared::clone(&opened.program),
            path: opened.program.file().path().to_owned(),
            build_id: opened.binary.build_id,
            arch: opened.binary.arch,
            plan: CapturePlan::default(),
            filter: self.event.and_then(|event| event.filter.clone()),
            filter_in_recorder: false,
            list: self.event.and_then(|event| event.list.clone()),
            shown: None,
            is_found: self.is_late || self.found.has(opened.program.file().id()),
            sites,
            arguments: description.arguments,
        });
    }

    fn refuse(&mut self, probe: &Probe, path: &Path, reason: RefusalReason) {
        self.new.add(Refusal::new(probe.event(), path, reason));
    }
}

impl Opened {
    /// Its own probes, by provider and name.
    fn probes(&self) -> HashMap<(&str, &str), &Probe> {
        let probes = self.binary.probes.iter();
        let named = probes.map(|probe| ((probe.provider.as_str(), probe.name.as_str()), probe));
        named.collect()
    }

    /// Checks that the file's own notes have all sites that the cache lists for a probe. Otherwise a cache that another user wrote would
    /// determine the addresses at which the kernel writes.
    fn has_sites(&self, own: Option<&Probe>, indexed: &Probe) -> Result<(), CheckError> {
        let own = own.map_or(&[][..], |probe| probe.sites.as_slice());
        let own: HashSet<_> = own.iter().map(key).collect();
        match indexed.sites.iter().find(|site| !own.contains(&key(site))) {
            None => Ok(()),
            Some(site) => Err(CheckError::NotInNotes {
                path: self.program.file().path().to_owned(),
                pc: site.pc,
                semaphore: site.semaphore,
                args: site.args.clone(),
            }),
        }
    }

    /// Why a site must not be attached, unless the user forces it.
    fn check(&self, site: &Site) -> Result<(), RefusalReason> {
        Ok(self.program.file().check_site(site)?)
    }

    /// Why a site is never attached, not even if the user forces it: it would have no effect, or could harm more than its program.
    fn never(&self, site: &Site) -> Option<RefusalReason> {
        let file = self.program.file();
        // The machine of a file may be one that is not known.
        let uprobes_on = |host| {
            file.arch()
                .map_or(Uprobes::None, |arch| arch.uprobes_on(host))
        };
        let uprobes = Arch::host().map(uprobes_on);
        let prefix = file.unplanted_prefix(site);
        match (uprobes, prefix) {
            (Some(Uprobes::None), _) => Some(RefusalReason::Architecture),
            (_, Some(prefix)) => Some(RefusalReason::Prefix {
                pc: site.pc,
                prefix,
            }),
            _ => nop5::danger(file, site).map(|danger| RefusalReason::Nop5 {
                pc: site.pc,
                danger,
            }),
        }
    }
}

/// The fields that identify a site.
fn key(site: &Site) -> (u64, u64, &str) {
    (site.pc, site.semaphore, &site.args)
}

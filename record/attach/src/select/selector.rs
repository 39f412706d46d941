//! Selecting the probes of patterns: in which files they are found, which sites may be attached, and what is refused.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::chosen_build;
use usdtrec_buildid_cache::elf::{CheckError, FileId, FileState, ObjectFile};
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_format::expr::{Capture, Expr};
use usdtrec_format::schema::{Description, Schemas};
use usdtrec_format::trace::Limit;
use usdtrec_format::{Arch, Binary, CapturePlan, Operand, Pattern, Probe, Site, Uprobes};
use usdtrec_kernel::host::identity::is_same_inode;
use usdtrec_kernel::nop5;

use super::candidates::{Candidate, matching};
use super::found_files::FoundFiles;
use super::probe::{PlannedProbe, PlannedSite};
use super::program::Program;
use super::refusal::{NoProbe, Refusal, RefusalReason, Refusals};
use super::selected::{Selection, add_debug_info};
use super::shared_instruction::with_most_arguments;
use crate::error::RecordError;
use crate::places;

/// The state of a selection.
pub(super) struct Selector<'a> {
    pub(super) processes: &'a [u32],
    pub(super) is_host: bool,
    pub(super) may_wait: bool,
    pub(super) force: bool,
    pub(super) starts_programs: bool,
    /// Whether the recording has begun, so that what is wrong with one probe must not keep out others.
    pub(super) is_late: bool,
    /// The symbols by which files are known to copy their code.
    pub(super) copying: HashMap<FileId, Option<String>>,
    pub(super) schemas: &'a Schemas,
    /// The event that is being selected.
    pub(super) event: Option<&'a EventSelector>,
    /// The sites selected so far, with their arguments: a file may have several names, and patterns may overlap.
    pub(super) seen: HashSet<(FileId, Option<u64>, String, String)>,
    /// Number of them at each instruction of files that were found.
    pub(super) at_instruction: HashMap<(FileId, u64), usize>,
    /// Files that were opened because the cache lists probes for them.
    pub(super) open: HashMap<PathBuf, Result<Rc<Opened>, RefusalReason>>,
    /// The open files. Files that are one inode have one program.
    pub(super) programs: HashMap<FileId, Shared<Program>>,
    pub(super) found: FoundFiles,
    /// Refusals of the pattern that is being selected, and of those before.
    pub(super) new: Refusals,
    pub(super) refusals: Refusals,
    pub(super) selection: Selection,
}

/// An open file, and its own probes.
pub(super) struct Opened {
    program: Shared<Program>,
    binary: Shared<Binary>,
}

impl<'a> Selector<'a> {
    /// Of no process, before the recording; it has selected nothing.
    pub(super) fn new(schemas: &'a Schemas) -> Self {
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

    pub(super) fn finish(self) -> Selection {
        let mut selection = self.selection;
        let refusals = self.refusals.into_vec().into_iter();
        let (of_found, others) = refusals.partition(|refusal| self.found.has_path(&refusal.path));
        (selection.refused_files, selection.refusals) = (of_found, others);
        add_debug_info(&mut selection.probes);
        selection
    }

    pub(super) fn pattern<'c>(
        &mut self,
        pattern: &Pattern,
        candidates: impl Iterator<Item = &'c Candidate> + Clone,
    ) -> Result<(), RecordError> {
        let build = chosen_build(
            pattern,
            candidates.clone().map(|candidate| &*candidate.binary),
        )?;
        let is_chosen = |candidate: &&Candidate| {
            let is_build = build.is_none() || candidate.binary.build_id == build;
            is_build && candidate.has(pattern)
        };
        let (mut matched, mut planned) = (false, false);
        let mut all_found = true;
        for candidate in candidates.clone().filter(is_chosen) {
            matched = true;
            all_found &= candidate.id().is_some_and(|file| self.found.has(file));
            planned |= self.candidate(pattern, candidate);
        }
        let new = std::mem::take(&mut self.new).into_vec();
        if !matched {
            let binaries = candidates.map(|candidate| &*candidate.binary);
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
            .or_insert_with(|| super::program::copying_symbol(file))
            .clone()
    }

    /// The file of a candidate, opened and checked once.
    fn opened(&mut self, candidate: &Candidate) -> Result<Rc<Opened>, RefusalReason> {
        let path = &candidate.binary.path;
        if let Some(file) = &candidate.file {
            file.check_file(candidate.binary.build_id)?;
            return Ok(Rc::new(Opened {
                program: self.program(file),
                binary: Shared::clone(&candidate.binary),
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
            let binary = Shared::new(file.binary()?);
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
        let is_found = self.is_late || self.found.has(opened.program.file().id());
        if is_found {
            opened.program.set_found();
        }
        let operands = sites.iter().flat_map(|site| &site.operands);
        opened.program.need_symbols(operands);
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
            is_found,
            sites,
            arguments: description.arguments,
        });
    }

    pub(super) fn refuse(&mut self, probe: &Probe, path: &Path, reason: RefusalReason) {
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

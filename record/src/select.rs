//! From patterns to planned probes: which sites of which files, checked, each with its capture plan.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::{self, FileState, Preflight};
use usdtrec_buildid_cache::{Indexed, suggest};
use usdtrec_format::expr::{Capture, Expr};
use usdtrec_format::schema::{Argument, Disagreement, Schemas};
use usdtrec_format::{Arch, Binary, BuildId, CapturePlan, Pattern, Probe, Site};

use crate::RecordError;
use crate::debug_info;
use crate::plan::{Frames, fast, plan};
use crate::refusal::Refusal;

/// Sites of one probe in one file that are captured alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedProbe {
    /// Provider.
    pub provider: String,
    /// Name.
    pub name: String,
    /// When it fires, in a line, as its schema says.
    pub description: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// What a hit hands over.
    pub plan: CapturePlan,
    /// Which hits count; `None` for all.
    pub filter: Option<Expr>,
    /// Which arguments are captured; `None` for those of the note.
    pub captures: Option<Vec<Capture>>,
    /// The sites; at least one.
    pub sites: Vec<Site>,
    /// What is known of the arguments, as many as the site with the most operands has.
    pub arguments: Vec<Argument>,
}

impl PlannedProbe {
    /// perf's event name, `sdt_PROVIDER:NAME`.
    #[must_use]
    pub fn event(&self) -> String {
        format!("sdt_{}:{}", self.provider, self.name)
    }

    /// What the kernel wants to know of a site: its file offset and its semaphore's, 0 for none.
    pub(crate) fn offsets(&self, site: &Site) -> Result<(u64, u32), RecordError> {
        let refused = |reason: &str| {
            RecordError::Refused(Refusal::new(self.event(), &self.path, reason).to_string())
        };
        let offset = site
            .offset
            .ok_or_else(|| refused("no segment of the file holds the site"))?;
        // The uprobe PMU takes 32 bits (config 32-63, kernel/events/core.c PERF_UPROBE_REF_CTR_OFFSET).
        let semaphore = u32::try_from(site.semaphore_offset.unwrap_or(0));
        Ok((
            offset,
            semaphore.map_err(|_| refused("its semaphore lies beyond 4 GiB of the file"))?,
        ))
    }
}

/// An event that is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The probes.
    pub pattern: Pattern,
    /// Which of their hits count; `None` for all.
    pub filter: Option<Expr>,
    /// Which arguments are captured; `None` for those of the note.
    pub captures: Option<Vec<Capture>>,
}

/// What is wanted, and where to look for it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The events; each must select something.
    pub events: &'a [Wanted],
    /// Binaries to look in for patterns that name no file: the cache's, and those of the traced processes.
    pub indexed: Vec<Indexed>,
    /// Plant although a check of the file refuses.
    pub force: bool,
    /// Bytes of stack to copy for operands whose depth cannot be told.
    pub stack: u32,
    /// What is known of probes' arguments.
    pub schemas: &'a Schemas,
}

/// What was selected.
#[derive(Debug, Default)]
pub struct Selection {
    /// Probes to plant; a probe is there several times where its sites need different plans.
    pub probes: Vec<PlannedProbe>,
    /// What will not be planted.
    pub refusals: Vec<Refusal>,
    /// Where schemas and notes do not agree.
    pub disagreements: Vec<Disagreement>,
    /// Files named by path, which an index may want to keep.
    pub named: Vec<PathBuf>,
}

/// Selects, checks and plans.
///
/// # Errors
/// [`RecordError::NoProbe`] if a pattern selects nothing, [`RecordError::Refused`] if nothing of what it selects can be planted.
pub fn select(request: Request<'_>) -> Result<Selection, RecordError> {
    let Request {
        events,
        indexed,
        force,
        stack,
        schemas,
    } = request;
    let mut selector = Selector {
        force,
        stack,
        schemas,
        wanted: None,
        seen: HashSet::new(),
        open: HashMap::new(),
        selection: Selection::default(),
    };
    let all = present(indexed);
    for wanted in events {
        selector.wanted = Some(wanted);
        let pattern = &wanted.pattern;
        match pattern.path() {
            Some(path) => {
                let binary = named(path)?;
                selector.selection.named.push(binary.path.clone());
                selector.pattern(pattern, &[Indexed::current(binary)])?;
            }
            None => selector.pattern(pattern, &all)?,
        }
    }
    let mut selection = selector.selection;
    name_arguments(&mut selection.probes);
    Ok(selection)
}

/// Asks debugging information for the arguments of probes of which schemas say nothing.
fn name_arguments(probes: &mut [PlannedProbe]) {
    let mut files: BTreeMap<PathBuf, BTreeMap<String, Vec<Site>>> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| is_unnamed(&probe.arguments)) {
        let file = files.entry(probe.path.clone()).or_default();
        let sites = file.entry(probe.event()).or_default();
        sites.extend_from_slice(&probe.sites);
    }
    for (path, events) in files {
        let file = probes.iter().find(|probe| probe.path == path);
        let Some((build_id, arch)) = file.map(|probe| (probe.build_id, probe.arch)) else {
            continue;
        };
        let sites = events.values().map(Vec::as_slice);
        let named = debug_info::arguments(&path, build_id.as_ref(), arch, sites);
        let named: HashMap<_, _> = events.keys().zip(named).collect();
        for probe in probes.iter_mut().filter(|probe| probe.path == path) {
            if let Some(named) = named.get(&probe.event())
                && is_unnamed(&probe.arguments)
            {
                probe.arguments.clone_from(named);
            }
        }
    }
}

/// Whether nothing is known of the arguments, of which there are some.
fn is_unnamed(arguments: &[Argument]) -> bool {
    let mut places = arguments.iter().enumerate();
    !arguments.is_empty() && places.all(|(place, argument)| *argument == Argument::unnamed(place))
}

/// Of several builds of one path, only the one that stands there now counts, if there is one.
fn present(mut indexed: Vec<Indexed>) -> Vec<Indexed> {
    let current = indexed.iter().filter(|indexed| indexed.is_current());
    let current: HashSet<PathBuf> = current.map(|indexed| indexed.binary.path.clone()).collect();
    indexed.retain(|indexed| indexed.is_current() || !current.contains(&indexed.binary.path));
    indexed
}

/// A binary named by path.
fn named(path: &Path) -> Result<Binary, RecordError> {
    let wrong = |reason: String| RecordError::NoProbe(format!("{}: {reason}", path.display()));
    let path = fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
    elf::read_binary(&path).map_err(|error| wrong(error.to_string()))
}

/// Works through the patterns.
struct Selector<'a> {
    force: bool,
    stack: u32,
    schemas: &'a Schemas,
    /// The event at hand.
    wanted: Option<&'a Wanted>,
    /// Device, inode and offset of every site selected so far: the same file may have several names, and
    /// patterns may overlap.
    seen: HashSet<(u64, u64, Option<u64>, String)>,
    open: HashMap<PathBuf, Opened>,
    selection: Selection,
}

/// A file that is open for checks and plans.
struct Opened {
    device: u64,
    inode: u64,
    preflight: Result<Preflight, String>,
    content: Option<memmap2::Mmap>,
}

impl Selector<'_> {
    fn pattern(&mut self, pattern: &Pattern, candidates: &[Indexed]) -> Result<(), RecordError> {
        let (mut matched, mut planned) = (false, false);
        let before = std::mem::take(&mut self.selection.refusals);
        for Indexed { binary, state, .. } in candidates {
            for probe in binary
                .probes
                .iter()
                .filter(|probe| pattern.matches(&probe.provider, &probe.name))
            {
                matched = true;
                if *state == FileState::Gone {
                    let reason = format!(
                        "the file is no longer there\n  forget it with: usdtrec buildid-cache --purge {}",
                        binary.path.display()
                    );
                    self.refuse(probe, binary, &reason);
                } else {
                    planned |= self.probe(binary, probe);
                }
            }
        }
        if !matched {
            return Err(RecordError::NoProbe(no_probe(pattern, candidates)));
        }
        if !planned {
            let reasons = self.selection.refusals.iter().map(ToString::to_string);
            let reasons: Vec<String> = reasons.collect();
            return Err(RecordError::Refused(reasons.join("\nusdtrec: ")));
        }
        let new = std::mem::replace(&mut self.selection.refusals, before);
        for refusal in new {
            refusal.add_to(&mut self.selection.refusals);
        }
        Ok(())
    }

    /// Plans a probe; `true` if at least one of its sites is planted, now or already.
    fn probe(&mut self, binary: &Binary, probe: &Probe) -> bool {
        let opened = self
            .open
            .entry(binary.path.clone())
            .or_insert_with(|| Opened::new(binary));
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        let mut known = false;
        for site in &probe.sites {
            let key = (opened.device, opened.inode, site.offset, probe.event());
            if self.seen.contains(&key) {
                known = true;
                continue;
            }
            match opened.check(binary.arch, site) {
                Err(reason) if !self.force => refused.push(reason),
                _ => {
                    self.seen.insert(key);
                    accepted.push(site.clone());
                }
            }
        }
        refused.dedup();
        for reason in refused {
            self.refuse(probe, binary, &reason);
        }
        let any = known || !accepted.is_empty();
        self.plan(binary, probe, accepted);
        any
    }

    /// Groups sites by their plan.
    fn plan(&mut self, binary: &Binary, probe: &Probe, sites: Vec<Site>) {
        let content = self
            .open
            .get(&binary.path)
            .and_then(|opened| opened.content.as_deref());
        let frames =
            content.map_or_else(Frames::unknown, |content| Frames::of(content, binary.arch));
        let description = self.schemas.describe(probe, binary.arch);
        self.selection
            .disagreements
            .extend(description.disagreements);
        let schema = description.choice.schema;
        let about = schema.and_then(|schema| schema.description);
        let mut planned: Vec<PlannedProbe> = Vec::new();
        for site in sites {
            let plan = plan(&site, binary.arch, &frames, self.stack);
            if let Some(same) = planned.iter_mut().find(|probe| probe.plan == plan) {
                same.sites.push(site);
                continue;
            }
            planned.push(PlannedProbe {
                provider: probe.provider.clone(),
                name: probe.name.clone(),
                description: about.clone(),
                path: binary.path.clone(),
                build_id: binary.build_id,
                arch: binary.arch,
                plan,
                filter: self.wanted.and_then(|wanted| wanted.filter.clone()),
                captures: self.wanted.and_then(|wanted| wanted.captures.clone()),
                sites: vec![site],
                arguments: description.arguments.clone(),
            });
        }
        self.selection.probes.append(&mut planned);
    }

    fn refuse(&mut self, probe: &Probe, binary: &Binary, reason: &str) {
        let refusal = Refusal::new(probe.event(), &binary.path, reason);
        refusal.add_to(&mut self.selection.refusals);
    }
}

impl Opened {
    fn new(binary: &Binary) -> Self {
        let file = File::open(&binary.path).ok();
        let metadata = file.as_ref().and_then(|file| file.metadata().ok());
        Self {
            device: metadata.as_ref().map_or(0, MetadataExt::dev),
            inode: metadata.as_ref().map_or(0, MetadataExt::ino),
            preflight: Preflight::open(binary).map_err(|refusal| refusal.to_string()),
            content: file.and_then(|file| map(&file)),
        }
    }

    fn check(&self, arch: Option<Arch>, site: &Site) -> Result<(), String> {
        let preflight = self.preflight.as_ref().map_err(String::clone)?;
        preflight
            .check(site)
            .map_err(|refusal| refusal.to_string())?;
        let content = self.content.as_deref();
        match content.and_then(|content| fast::damage(content, arch, site)) {
            Some(damage) => Err(damage),
            None => Ok(()),
        }
    }
}

pub(crate) fn map(file: &File) -> Option<memmap2::Mmap> {
    // SAFETY: a program file that somebody truncates while we read it would end us with SIGBUS; the
    // kernel refuses to write to files that are being executed, and package managers replace them.
    unsafe { memmap2::Mmap::map(file) }.ok()
}

/// The message for a pattern that selects nothing.
fn no_probe(pattern: &Pattern, candidates: &[Indexed]) -> String {
    let place = match pattern.path() {
        Some(path) => format!("{} has no probe {}", path.display(), pattern.text()),
        None => format!("no indexed binary has a probe {}", pattern.text()),
    };
    let closest = match suggest(candidates, pattern, 3).join(", ") {
        none if none.is_empty() => none,
        events => format!("\n  closest: {events}"),
    };
    format!("{place}{closest}\n  index another binary with: usdtrec buildid-cache --add PATH")
}

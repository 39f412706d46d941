//! The files that may have selected probes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::Indexed;
use usdtrec_buildid_cache::elf::{FileId, FileState, ObjectFile};
use usdtrec_format::{Binary, Pattern, Probe};

use super::refusal::RefusalReason;
use crate::places::{Account, OF_FILE, Place, PlaceCount, Places};

/// A file that may have probes.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Its probes, or those that the cache has for it.
    pub(super) binary: Binary,
    pub(super) state: FileState,
    /// The file, if it is open already.
    pub(super) file: Option<Shared<ObjectFile>>,
}

impl Candidate {
    pub(super) fn indexed(indexed: Indexed) -> Self {
        Self {
            binary: indexed.binary,
            state: indexed.state,
            file: None,
        }
    }

    /// An open file; `None` if its notes cannot be read.
    pub(super) fn of_file(file: &Shared<ObjectFile>) -> Option<Self> {
        Some(Self {
            binary: file.binary().ok()?,
            state: FileState::Current,
            file: Some(Shared::clone(file)),
        })
    }

    pub(super) fn id(&self) -> Option<FileId> {
        self.file.as_ref().map(|file| file.id())
    }

    /// Its probes that a pattern selects.
    pub(super) fn matching<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = &'a Probe> {
        matching(&self.binary, pattern)
    }

    /// Whether it is one of the files that were found.
    pub(super) fn is_in(&self, found: &FoundFiles) -> bool {
        self.id().is_some_and(|file| found.has(file))
    }

    pub(super) fn has(&self, pattern: &Pattern) -> bool {
        pattern.fits_build(self.binary.build_id) && self.matching(pattern).next().is_some()
    }
}

/// Provider and name of a probe.
fn names(probe: &Probe) -> (&str, &str) {
    (&probe.provider, &probe.name)
}

/// The probes of a file that a pattern selects.
pub(super) fn matching<'a>(
    binary: &'a Binary,
    pattern: &'a Pattern,
) -> impl Iterator<Item = &'a Probe> {
    let probes = binary.probes.iter();
    probes.filter(|probe| pattern.matches(&probe.provider, &probe.name))
}

/// The files that are open when the probes are selected.
pub(super) struct KnownFiles<'f> {
    /// Files that run, or that the traced processes map.
    pub(super) mapped: &'f [Candidate],
    /// Others, which patterns name by their paths.
    pub(super) by_path: &'f [Candidate],
    /// Whether processes are named.
    pub(super) is_of_processes: bool,
    /// Whether files that appear are recorded, too.
    pub(super) may_wait: bool,
}

impl<'f> KnownFiles<'f> {
    /// Providers and names of their probes.
    pub(super) fn probes(&self) -> HashSet<(&'f str, &'f str)> {
        let files = self.mapped.iter().chain(self.by_path);
        files
            .flat_map(|file| &file.binary.probes)
            .map(names)
            .collect()
    }

    /// Whether one of them has probes that a pattern selects.
    pub(super) fn has(&self, pattern: &Pattern) -> bool {
        let mut files = self.mapped.iter().chain(self.by_path);
        files.any(|file| file.has(pattern))
    }

    /// Whether a pattern without a path selects probes of a file that only the cache knows. `probes` are [`Self::probes`].
    pub(super) fn attaches(
        &self,
        pattern: &Pattern,
        indexed: &Candidate,
        probes: &HashSet<(&str, &str)>,
    ) -> bool {
        let is_mapped = || self.mapped.iter().any(|file| file.has(pattern));
        if !indexed.has(pattern) || self.is_of_processes && is_mapped() {
            return false;
        }
        // A glob does not mean copies of what is known, which are followed when they run.
        let spares_copies = self.may_wait && !pattern.is_exact() && pattern.build().is_none();
        let mut selected = indexed.matching(pattern);
        !spares_copies || selected.any(|probe| !probes.contains(&names(probe)))
    }
}

/// The files that were found and have selected probes.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    files: HashMap<FileId, Result<Option<Place>, RefusalReason>>,
    paths: HashSet<PathBuf>,
}

/// A file, its probes, and the processes that map it.
pub(super) struct FoundFile<'f> {
    pub(super) file: &'f ObjectFile,
    pub(super) binary: &'f Binary,
    pub(super) pids: &'f [u32],
}

impl FoundFiles {
    /// Takes places for files: first for those that need the least, so that a large one of a user does not keep out
    /// the user's other ones.
    pub(super) fn new<'f>(
        files: impl Iterator<Item = FoundFile<'f>>,
        patterns: &[&Pattern],
        places: &Places,
    ) -> Self {
        let needed = files.map(|file| (needed(file.binary, patterns), file));
        let mut needed: Vec<_> = needed.filter(|(need, _)| need.sites > 0).collect();
        needed.sort_by_key(|(need, file)| (need.sites, need.arguments, &file.binary.path));
        let mut accounts: HashMap<u32, Option<Account>> = HashMap::new();
        let mut found = Self::default();
        for (need, FoundFile { file, binary, pids }) in needed {
            let known = pids.iter().filter_map(|&pid| {
                let account = accounts.entry(pid);
                *account.or_insert_with(|| Account::of_process(pid))
            });
            let mut known: Vec<Account> = known.collect();
            known.sort_unstable();
            known.dedup();
            if known.is_empty() {
                // Its processes have ended.
                known.push(Account::of_user(file.owner()));
            }
            found.add(file.id(), &binary.path, taken(&known, need, places));
        }
        found
    }

    /// Takes places for one file.
    pub(super) fn of_file(
        id: FileId,
        binary: &Binary,
        patterns: &[&Pattern],
        account: Account,
        places: &Places,
    ) -> Self {
        let mut found = Self::default();
        let need = needed(binary, patterns);
        found.add(id, &binary.path, taken(&[account], need, places));
        found
    }

    fn add(&mut self, id: FileId, path: &Path, place: Result<Place, RefusalReason>) {
        self.paths.insert(path.to_owned());
        self.files.insert(id, place.map(Some));
    }

    /// Whether a file was found.
    pub(super) fn has(&self, file: FileId) -> bool {
        self.files.contains_key(&file)
    }

    /// Whether a path is that of one of the files.
    pub(super) fn has_path(&self, path: &Path) -> bool {
        self.paths.contains(path)
    }

    /// Why nothing is attached in a file.
    pub(super) fn refusal(&self, file: FileId) -> Option<RefusalReason> {
        let place = self.files.get(&file)?.as_ref();
        place.err().cloned()
    }

    /// The places of a file, once.
    pub(super) fn take_place(&mut self, file: FileId) -> Option<Place> {
        let place = self.files.get_mut(&file)?.as_mut();
        place.ok()?.take()
    }
}

/// What the selected probes of a file need.
fn needed(binary: &Binary, patterns: &[&Pattern]) -> PlaceCount {
    let patterns = patterns.iter();
    let patterns: Vec<_> = patterns
        .filter(|pattern| pattern.fits_build(binary.build_id))
        .collect();
    let is_selected = |probe: &&Probe| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| pattern.matches(&probe.provider, &probe.name))
    };
    PlaceCount::of_probes(binary.probes.iter().filter(is_selected))
}

fn taken(accounts: &[Account], need: PlaceCount, places: &Places) -> Result<Place, RefusalReason> {
    if let Some((has, what, most)) = need.beyond(OF_FILE) {
        return Err(RefusalReason::LargeFile { has, what, most });
    }
    let taken = places.take(accounts, need);
    taken.map_err(RefusalReason::Places)
}

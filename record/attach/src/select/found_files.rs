//! Files that were found in processes which nobody named, and which of them may be planted: any user can map any number of files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_format::{Binary, Pattern, Probe};

use crate::places::{Account, OF_FILE, Place, PlaceCount, Places};
use crate::select::refusal::RefusalReason;

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

    /// Why nothing is planted in a file.
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

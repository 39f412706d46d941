//! The files of processes that nobody named: they are read and attached within limits, because any user can map any number of files with any
//! number of notes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::{FileId, NOTE_BYTES, ObjectFile, PartialScan};
use usdtrec_format::{Binary, Pattern, Probe};

use super::candidates::Candidate;
use super::refusal::RefusalReason;
use crate::places::{Account, OF_FILE, Place, PlaceCount, Places, account_of};

/// Maximum number of probes of all files that are kept although no pattern selects them: messages have similar names.
const UNSELECTED: usize = 1 << 16;
/// Number of probes of a refused file that are kept, for messages.
const OF_REFUSED: usize = 64;

/// The probes of a file, as far as they matter.
#[derive(Debug)]
pub struct FoundProbes {
    /// Those that a pattern selects, and some others.
    pub binary: Shared<Binary>,
    /// Why none of them is attached. Then a few are there.
    pub refusal: Option<RefusalReason>,
    /// Whether patterns may select probes that are not there.
    pub is_partial: bool,
}

impl FoundProbes {
    /// Reads a whole file, which the user named; `None` if its notes cannot be read.
    pub fn of_named(file: &ObjectFile) -> Option<Self> {
        Some(Self {
            binary: Shared::new(file.binary().ok()?),
            refusal: None,
            is_partial: false,
        })
    }

    /// Reads the probes of a file that patterns select, within limits; `None` if its notes cannot be read. Of those that only patterns with a path
    /// select, one of each pattern is there.
    pub fn of_found(file: &ObjectFile, patterns: &[&Pattern]) -> Option<Self> {
        let of_paths = patterns.iter().filter(|pattern| pattern.path().is_some());
        let mut of_paths: Vec<&&Pattern> = of_paths.collect();
        Self::read(file, patterns, |provider, name| {
            let before = of_paths.len();
            of_paths.retain(|pattern| !pattern.matches(provider, name));
            of_paths.len() < before
        })
    }

    /// With the probes that no pattern without a path selects if `keep` says so.
    fn read(
        file: &ObjectFile,
        patterns: &[&Pattern],
        mut keep: impl FnMut(&str, &str) -> bool,
    ) -> Option<Self> {
        let patterns = fitting(patterns, file);
        let mut sites = 0;
        let read = file.scan_within(NOTE_BYTES, |provider, name| {
            let mut patterns = patterns.iter();
            if !patterns.any(|pattern| pattern.matches(provider, name)) {
                return keep(provider, name);
            }
            sites += 1;
            sites <= OF_FILE.sites
        });
        let PartialScan { scan, is_whole } = read.ok().filter(|read| !read.scan.debug_file)?;
        let refusal = match sites {
            1.. if !is_whole => Some(RefusalReason::LargeNotes {
                bytes: file.note_bytes(),
                most: NOTE_BYTES,
            }),
            _ if sites > OF_FILE.sites => Some(RefusalReason::LargeFile {
                has: sites,
                what: "sites",
                most: OF_FILE.sites,
            }),
            _ => None,
        };
        let mut found = Self {
            binary: Shared::new(scan.binary),
            refusal: None,
            is_partial: !is_whole,
        };
        if let Some(refusal) = refusal {
            found.refuse(refusal);
        }
        Some(found)
    }

    fn refuse(&mut self, reason: RefusalReason) {
        let binary = Shared::make_mut(&mut self.binary);
        binary.probes.truncate(OF_REFUSED);
        binary.probes.shrink_to_fit();
        self.refusal = Some(reason);
        self.is_partial = true;
    }
}

/// The files that were found and have selected probes.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    files: HashMap<FileId, Result<Option<Place>, RefusalReason>>,
    paths: HashSet<PathBuf>,
}

impl FoundFiles {
    /// Reads files, with the processes that map them, and takes places: first for those that have the fewest notes, so that a large one of a user
    /// does not keep out the user's other ones.
    pub(super) fn read<'f>(
        &mut self,
        files: impl Iterator<Item = (&'f Shared<ObjectFile>, &'f [u32])>,
        patterns: &[&Pattern],
        places: &Places,
    ) -> HashMap<FileId, Candidate> {
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|(file, _)| (file.note_bytes(), file.path()));
        let mut accounts: HashMap<u32, Option<Account>> = HashMap::new();
        let mut unselected = UNSELECTED;
        let mut candidates = HashMap::new();
        for (file, pids) in files {
            let keep = |_: &str, _: &str| take_one(&mut unselected);
            let Some(mut found) = FoundProbes::read(file, patterns, keep) else {
                continue;
            };
            let of_processes = || {
                let known = pids.iter().filter_map(|&pid| {
                    let account = accounts.entry(pid);
                    *account.or_insert_with(|| account_of(pid))
                });
                let mut known: Vec<Account> = known.collect();
                known.sort_unstable();
                known.dedup();
                if known.is_empty() {
                    // Its processes have ended.
                    known.push(Account::of_user(file.owner()));
                }
                known
            };
            self.take(file, &mut found, patterns, of_processes, places);
            candidates.insert(file.id(), Candidate::new(file, found.binary));
        }
        candidates
    }

    /// Takes places for one file.
    pub(super) fn of_file(
        file: &ObjectFile,
        mut found: FoundProbes,
        patterns: &[&Pattern],
        account: Account,
        places: &Places,
    ) -> Self {
        let mut files = Self::default();
        files.take(file, &mut found, patterns, || vec![account], places);
        files
    }

    fn take(
        &mut self,
        file: &ObjectFile,
        found: &mut FoundProbes,
        patterns: &[&Pattern],
        accounts: impl FnOnce() -> Vec<Account>,
        places: &Places,
    ) {
        let place = match &found.refusal {
            Some(reason) => Err(reason.clone()),
            None => {
                let patterns = fitting(patterns, file);
                let need = needed(&found.binary, &patterns);
                if need.sites == 0 {
                    return;
                }
                taken(&accounts(), need, places)
            }
        };
        if let Err(reason) = &place {
            found.refuse(reason.clone());
        }
        self.paths.insert(file.path().to_owned());
        self.files.insert(file.id(), place.map(Some));
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

/// Takes one of those that are left, if there is one.
fn take_one(left: &mut usize) -> bool {
    let fewer = left.checked_sub(1);
    *left = fewer.unwrap_or(0);
    fewer.is_some()
}

/// The patterns without a path that do not mean another build.
fn fitting<'p>(patterns: &[&'p Pattern], file: &ObjectFile) -> Vec<&'p Pattern> {
    let patterns = patterns.iter().copied();
    patterns
        .filter(|pattern| pattern.path().is_none() && pattern.fits_build(file.build_id()))
        .collect()
}

/// What the selected probes of a file need.
fn needed(binary: &Binary, patterns: &[&Pattern]) -> PlaceCount {
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

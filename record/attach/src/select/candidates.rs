//! The files that may have selected probes.

use std::collections::HashSet;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::Indexed;
use usdtrec_buildid_cache::elf::{FileId, FileState, ObjectFile};
use usdtrec_format::{Binary, Pattern, Probe};

/// A file that may have probes.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Its probes, or those that the cache has for it.
    pub(super) binary: Shared<Binary>,
    pub(super) state: FileState,
    /// The file, if it is open already.
    pub(super) file: Option<Shared<ObjectFile>>,
}

impl Candidate {
    pub(super) fn indexed(indexed: Indexed) -> Self {
        Self {
            binary: Shared::new(indexed.binary),
            state: indexed.state,
            file: None,
        }
    }

    /// An open file; `None` if its notes cannot be read.
    pub(super) fn of_file(file: &Shared<ObjectFile>) -> Option<Self> {
        Some(Self::new(file, Shared::new(file.binary().ok()?)))
    }

    /// An open file with these probes.
    pub(super) fn new(file: &Shared<ObjectFile>, binary: Shared<Binary>) -> Self {
        Self {
            binary,
            state: FileState::Current,
            file: Some(Shared::clone(file)),
        }
    }

    pub(super) fn id(&self) -> Option<FileId> {
        self.file.as_ref().map(|file| file.id())
    }

    /// Its probes that a pattern selects.
    pub(super) fn matching<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = &'a Probe> {
        matching(&self.binary, pattern)
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

//! An entry of the cache: a build-id, the paths of its file, and the cached file.

use std::collections::HashSet;
use std::fs;

use std::path::{Component, Path, PathBuf};

use usdtrec_format::{Binary, BuildId, NoteError};

use crate::elf::{self, FileId, FileState, ProbeScan};
use crate::probes_text::ProbesText;

/// An entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Build-id.
    pub build_id: BuildId,
    /// Path of the file when it was added; `[kernel.kallsyms]` and `[vdso]` have no directory.
    pub path: PathBuf,
    /// The entry's directory in the cache.
    pub(crate) dir: PathBuf,
}

/// A binary from the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The file and its probes. Probes from perf's text ([`ProbeSource::Text`]) have no sites.
    pub binary: Binary,
    /// State of the file at its path.
    pub state: FileState,
    /// Source of the probes.
    pub source: ProbeSource,
    /// Errors of notes that could not be read.
    pub damaged: Vec<NoteError>,
}

/// Where the probes of an indexed binary were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSource {
    /// The notes of the file, or of its copy in the cache.
    Notes,
    /// perf's text in the cache, which has only names. It is used if no file has the build-id any more.
    Text,
}

impl Indexed {
    /// An entry for a binary that was read just now from its own path.
    #[must_use]
    pub const fn current(binary: Binary) -> Self {
        Self {
            binary,
            state: FileState::Current,
            source: ProbeSource::Notes,
            damaged: Vec::new(),
        }
    }

    /// Whether the file at the path still is the indexed one.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.state == FileState::Current
    }
}

impl Entry {
    /// Reads the link of a build-id.
    pub(crate) fn read(cache: &Path, build_id: BuildId) -> Option<Self> {
        let link = link_path(cache, build_id);
        let target = fs::read_link(&link).ok()?;
        // ../../PATH/BUILD-ID
        let mut parts = target.components();
        let up = (parts.next(), parts.next());
        if up != (Some(Component::ParentDir), Some(Component::ParentDir)) {
            return None;
        }
        let rest = parts.as_path();
        let plain = |part| matches!(part, Component::Normal(_));
        if !rest.components().all(plain) || !link.is_dir() {
            return None;
        }
        // The directory of an entry is named by its build-id.
        if rest.file_name()?.to_str() != Some(&build_id.to_string()) {
            return None;
        }
        let origin = rest.parent().filter(|path| path.file_name().is_some())?;
        let is_pseudo = origin.components().count() == 1
            && origin.as_os_str().as_encoded_bytes().starts_with(b"[");
        Some(Self {
            build_id,
            path: if is_pseudo {
                origin.to_owned()
            } else {
                Path::new("/").join(origin)
            },
            dir: cache.join(rest),
        })
    }

    /// Whether the entry is the kernel or a vdso instead of a file.
    #[must_use]
    pub(crate) fn is_pseudo(&self) -> bool {
        !self.path.is_absolute()
    }

    /// Whether perf lists the entry: its file is unchanged, or it is the running kernel.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        if self.is_pseudo() {
            let kernel = self.path == Path::new("[kernel.kallsyms]");
            return kernel && elf::kernel_build_id() == Some(self.build_id);
        }
        self.state() == FileState::Current
    }

    /// State of the file at the entry's path.
    #[must_use]
    pub fn state(&self) -> FileState {
        FileState::compare(&self.path, self.build_id)
    }

    /// Path of the cached file.
    #[must_use]
    pub fn elf(&self) -> PathBuf {
        self.dir.join("elf")
    }

    /// perf's text of its probes.
    pub(crate) fn text(&self) -> ProbesText {
        let text = fs::read(self.dir.join("probes")).unwrap_or_default();
        ProbesText::parse(&text)
    }

    /// All paths of the file: the entry's own, and those in perf's text.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths_with(&self.text())
    }

    pub(crate) fn paths_with(&self, text: &ProbesText) -> Vec<PathBuf> {
        let mut paths = vec![self.path.clone()];
        paths.extend(text.paths().into_iter().filter(|path| *path != self.path));
        paths
    }

    /// Reads the binaries of the entry, one per path; empty if it has no probes.
    pub(crate) fn load(&self) -> Vec<Indexed> {
        if self.is_pseudo() {
            return Vec::new();
        }
        let text = self.text();
        let paths = self.paths_with(&text);
        let (scan, scanned, source) = match self.find_file(&paths) {
            Some((scan, id)) => (scan, id, ProbeSource::Notes),
            None => (self.named_only(&text), None, ProbeSource::Text),
        };
        if scan.binary.probes.is_empty() && scan.damaged.is_empty() {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        paths
            .into_iter()
            // Two names of one file are one binary: the kernel attaches probes to the inode.
            .filter(|path| FileId::from_path(path).is_none_or(|id| seen.insert(id)))
            .map(|path| Indexed {
                state: self.state_of(&path, scanned),
                binary: Binary {
                    path,
                    ..scan.binary.clone()
                },
                source,
                damaged: scan.damaged.clone(),
            })
            .collect()
    }

    /// Reads the first file that still has the entry's build-id: the cached one or one of the paths. The cached file usually is a hard
    /// link, which changes when the file is overwritten in place.
    fn find_file(&self, paths: &[PathBuf]) -> Option<(ProbeScan, Option<FileId>)> {
        std::iter::once(&self.elf()).chain(paths).find_map(|path| {
            let scan = elf::scan(path).ok()?;
            (scan.binary.build_id == Some(self.build_id)).then(|| (scan, FileId::from_path(path)))
        })
    }

    /// State of the file at `path`; `scanned` is the identity of the file that was read.
    fn state_of(&self, path: &Path, scanned: Option<FileId>) -> FileState {
        match FileId::from_path(path) {
            None => FileState::Gone,
            id if id == scanned => FileState::Current,
            _ => FileState::compare(path, self.build_id),
        }
    }

    /// The probes of perf's text, without sites.
    fn named_only(&self, text: &ProbesText) -> ProbeScan {
        ProbeScan {
            binary: Binary {
                path: self.path.clone(),
                build_id: Some(self.build_id),
                arch: None,
                probes: text.probes(),
            },
            damaged: Vec::new(),
            debug_file: false,
        }
    }
}

/// `DIR/.build-id/xx/yyyy`.
pub(crate) fn link_path(cache: &Path, build_id: BuildId) -> PathBuf {
    cache.join(".build-id").join(build_id.link_name())
}

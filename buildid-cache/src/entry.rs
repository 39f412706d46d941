//! One entry of the cache: a build-id, the paths at which its file stood, and the file itself.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use usdtrec_format::{Binary, BuildId, NoteError};

use crate::elf::{self, FileState, Scan};
use crate::text::ProbesText;

/// An entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Build-id.
    pub build_id: BuildId,
    /// Path of the file when it was added; `[kernel.kallsyms]` and `[vdso]` stand without a directory.
    pub path: PathBuf,
    /// The entry's directory in the cache.
    pub(crate) dir: PathBuf,
}

/// A binary of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The file and its probes. Where only perf's text was left to read ([`Source::Text`]), the probes have no sites.
    pub binary: Binary,
    /// What stands at its path now.
    pub state: FileState,
    /// What its probes were read from.
    pub source: Source,
    /// Notes that could not be read.
    pub damaged: Vec<NoteError>,
}

/// What an indexed binary's probes were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The notes of the file, or of its copy in the cache.
    Notes,
    /// perf's text in the cache, because no file with the build-id is left: names only.
    Text,
}

impl Indexed {
    /// A binary that was just read from its own path.
    #[must_use]
    pub const fn current(binary: Binary) -> Self {
        Self {
            binary,
            state: FileState::Current,
            source: Source::Notes,
            damaged: Vec::new(),
        }
    }

    /// Whether the indexed file still stands at its path.
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
        // Another directory is no entry, whatever it holds.
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

    /// Whether it is the kernel or a vdso, not a file.
    #[must_use]
    pub fn is_pseudo(&self) -> bool {
        !self.path.is_absolute()
    }

    /// Whether perf lists it: its file still stands at its path, or it is the running kernel.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        if self.is_pseudo() {
            let kernel = self.path == Path::new("[kernel.kallsyms]");
            return kernel && elf::kernel_build_id() == Some(self.build_id);
        }
        self.state() == FileState::Current
    }

    /// What stands at its path now.
    #[must_use]
    pub fn state(&self) -> FileState {
        FileState::of(&self.path, self.build_id)
    }

    /// The cached file.
    #[must_use]
    pub fn elf(&self) -> PathBuf {
        self.dir.join("elf")
    }

    /// perf's text of its probes.
    pub(crate) fn text(&self) -> ProbesText {
        let text = fs::read(self.dir.join("probes")).unwrap_or_default();
        ProbesText::parse(&text)
    }

    /// All paths at which its file stood: the entry's own, and those that perf's text names.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths_with(&self.text())
    }

    pub(crate) fn paths_with(&self, text: &ProbesText) -> Vec<PathBuf> {
        let mut paths = vec![self.path.clone()];
        paths.extend(text.paths().into_iter().filter(|path| *path != self.path));
        paths
    }

    /// Its binaries, one for each path; none if it carries no probes.
    pub(crate) fn load(&self) -> Vec<Indexed> {
        if self.is_pseudo() {
            return Vec::new();
        }
        let text = self.text();
        let paths = self.paths_with(&text);
        let (scan, inode, source) = match self.find_file(&paths) {
            Some((scan, inode)) => (scan, inode, Source::Notes),
            None => (self.named_only(&text), None, Source::Text),
        };
        if scan.binary.probes.is_empty() && scan.damaged.is_empty() {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        paths
            .into_iter()
            // Two names of one file are one binary: a probe planted through one is planted in both.
            .filter(|path| Inode::of(path).is_none_or(|inode| seen.insert(inode)))
            .map(|path| Indexed {
                state: self.state_of(&path, inode),
                binary: Binary {
                    path,
                    ..scan.binary.clone()
                },
                source,
                damaged: scan.damaged.clone(),
            })
            .collect()
    }

    /// The first file that still has the entry's build-id, read: the cached one or one of the paths. The cached
    /// one mostly is a hard link, and changes when the file is overwritten in place.
    fn find_file(&self, paths: &[PathBuf]) -> Option<(Scan, Option<Inode>)> {
        std::iter::once(&self.elf()).chain(paths).find_map(|path| {
            let scan = elf::scan(path).ok()?;
            (scan.binary.build_id == Some(self.build_id)).then(|| (scan, Inode::of(path)))
        })
    }

    fn state_of(&self, path: &Path, read: Option<Inode>) -> FileState {
        match Inode::of(path) {
            None => FileState::Gone,
            inode if inode == read => FileState::Current,
            _ => FileState::of(path, self.build_id),
        }
    }

    fn named_only(&self, text: &ProbesText) -> Scan {
        Scan {
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

/// A file's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }
}

/// `DIR/.build-id/xx/yyyy`.
pub(crate) fn link_path(cache: &Path, build_id: BuildId) -> PathBuf {
    let text = build_id.to_string();
    let (head, tail) = text.split_at(2);
    cache.join(".build-id").join(head).join(tail)
}

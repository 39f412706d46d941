//! Processes that mapped the files that were recorded, or other versions of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use usdtrec_format::trace::TraceInfo;
use usdtrec_format::{BuildId, FileDefinition};

/// What the kernel appends to the path of a file that is gone.
const DELETED: &[u8] = b" (deleted)";

/// The files that were recorded.
#[derive(Debug, Default)]
pub(crate) struct RecordedFiles {
    files: Vec<FileDefinition>,
    /// Files by path, as mapped files are called.
    by_path: HashMap<Vec<u8>, Vec<usize>>,
    by_build_id: HashMap<BuildId, Vec<usize>>,
    /// Build-ids of files that the trace names elsewhere, by path, for mappings that carry none.
    pub(crate) build_ids: HashMap<PathBuf, BuildId>,
    /// Build-ids that are longer than those of perf's records, by these.
    long_build_ids: HashMap<BuildId, BuildId>,
}

/// A file as a mapping names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedFile<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) build_id: Option<BuildId>,
}

/// The processes that mapped the recorded files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappers {
    /// Mappers of each file.
    files: Vec<MappersOfFile>,
}

/// The processes that mapped a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappersOfFile {
    /// Whether a process mapped the file itself.
    pub(crate) same: bool,
    /// Processes that mapped another version of it.
    others: BTreeSet<OtherVersion>,
}

/// A process that mapped another version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OtherVersion {
    pid: i32,
    /// Whether a build-id says that it is another one.
    by_build_id: bool,
}

/// The build-id of a file that a trace names.
#[derive(Clone, Copy, Debug)]
pub struct FileBuildId<'a> {
    /// The file's path.
    pub path: &'a Path,
    /// Its build-id.
    pub build_id: BuildId,
}

/// Whether a mapped file is the one recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Same,
    /// It has the path, and another content.
    Other,
}

impl RecordedFiles {
    /// The files that the head of a trace names.
    pub(crate) fn from_info(info: &TraceInfo) -> Self {
        let defined = info.definitions.as_ref();
        let defined = defined.map_or(&[][..], |all| all.files.as_slice());
        let of_defined = defined.iter().filter_map(|file| {
            Some(FileBuildId {
                path: &file.path,
                build_id: file.build_id?,
            })
        });
        let named = info.build_ids.iter().map(|entry| FileBuildId {
            path: &entry.path,
            build_id: entry.build_id,
        });
        let build_ids: Vec<_> = of_defined.chain(named).collect();
        Self::new(defined, &build_ids)
    }

    /// `build_ids` are those of files that the trace names, by path.
    pub(crate) fn new(files: &[FileDefinition], build_ids: &[FileBuildId<'_>]) -> Self {
        let mut recorded = Self {
            files: files.to_vec(),
            build_ids: build_ids
                .iter()
                .map(|file| (file.path.to_owned(), file.build_id))
                .collect(),
            long_build_ids: files
                .iter()
                .filter_map(|file| file.build_id)
                .filter(|id| id.in_perf() != *id)
                .map(|id| (id.in_perf(), id))
                .collect(),
            ..Self::default()
        };
        for (index, file) in files.iter().enumerate() {
            let path = file.path.as_os_str().as_bytes();
            for path in [path.to_vec(), [path, DELETED].concat()] {
                recorded.by_path.entry(path).or_default().push(index);
            }
            if let Some(id) = file.build_id {
                recorded.by_build_id.entry(id).or_default().push(index);
            }
        }
        recorded
    }

    /// The build-id of a mapped file; `None` if the trace has none.
    pub(crate) fn build_id(&self, file: MappedFile<'_>) -> Option<BuildId> {
        let build_id = file.build_id.or_else(|| {
            let path = Path::new(OsStr::from_bytes(file.path));
            self.build_ids.get(path).copied()
        })?;
        Some(
            self.long_build_ids
                .get(&build_id)
                .copied()
                .unwrap_or(build_id),
        )
    }

    /// The recorded files that a mapped file has to do with.
    fn matching(
        &self,
        path: &[u8],
        build_id: Option<BuildId>,
    ) -> impl Iterator<Item = (usize, Version)> {
        let by_path = self.by_path.get(path);
        let by_id = build_id.and_then(|id| self.by_build_id.get(&id));
        let indices = by_path.into_iter().chain(by_id).flatten();
        indices.filter_map(move |&index| {
            Some((index, version(self.files.get(index)?, path, build_id)?))
        })
    }
}

impl Mappers {
    /// Notes that a process mapped a file, and gives the bytes of memory that it takes.
    pub(crate) fn note(
        &mut self,
        recorded: &RecordedFiles,
        file: MappedFile<'_>,
        pid: i32,
    ) -> usize {
        if recorded.files.is_empty() {
            return 0;
        }
        self.files
            .resize_with(recorded.files.len(), MappersOfFile::default);
        let build_id = recorded.build_id(file);
        let mut memory = 0;
        // A process that maps one recorded version does not run another one than was recorded.
        let mut versions = recorded.matching(file.path, build_id);
        let is_recorded = versions.any(|(_, version)| version == Version::Same);
        let versions = recorded.matching(file.path, build_id);
        for (index, version) in
            versions.filter(|(_, found)| !is_recorded || *found == Version::Same)
        {
            if let Some(mappers) = self.files.get_mut(index) {
                memory += mappers.note(version, pid, build_id.is_some());
            }
        }
        memory
    }

    /// Adds what others noted, and gives the bytes of memory that it takes.
    pub(crate) fn append(&mut self, other: Self) -> usize {
        let len = self.files.len().max(other.files.len());
        self.files.resize_with(len, MappersOfFile::default);
        let mut memory = 0;
        for (mappers, other) in self.files.iter_mut().zip(other.files) {
            mappers.same |= other.same;
            for process in other.others {
                memory += mappers.note(Version::Other, process.pid, process.by_build_id);
            }
        }
        memory
    }

    /// The processes that mapped a recorded file.
    pub(crate) fn of_file(&self, index: usize) -> MappersOfFile {
        self.files.get(index).cloned().unwrap_or_default()
    }
}

impl MappersOfFile {
    fn note(&mut self, version: Version, pid: i32, by_build_id: bool) -> usize {
        /// What one takes in the tree.
        const ENTRY: usize = 16;
        let is_new = match version {
            Version::Same => {
                self.same = true;
                false
            }
            Version::Other => self.others.insert(OtherVersion { pid, by_build_id }),
        };
        if is_new { ENTRY } else { 0 }
    }

    /// Processes that mapped another version of the file.
    pub(crate) fn others(&self) -> BTreeSet<i32> {
        self.others.iter().map(|process| process.pid).collect()
    }

    /// The processes whose build-ids show that they mapped another version.
    pub(crate) fn others_by_build_id(&self) -> BTreeSet<i32> {
        let by_build_id = self.others.iter().filter(|process| process.by_build_id);
        by_build_id.map(|process| process.pid).collect()
    }
}

/// `None` if a mapped file has nothing to do with a recorded one.
fn version(file: &FileDefinition, path: &[u8], build_id: Option<BuildId>) -> Option<Version> {
    if file.build_id.is_some() && file.build_id == build_id {
        return Some(Version::Same);
    }
    let recorded = file.path.as_os_str().as_bytes();
    if path.strip_suffix(DELETED) == Some(recorded) {
        return Some(Version::Other);
    }
    if path != recorded {
        return None;
    }
    match (file.build_id, build_id) {
        (Some(recorded), Some(mapped)) if recorded != mapped => Some(Version::Other),
        _ => Some(Version::Same),
    }
}

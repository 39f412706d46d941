//! Where the files of a trace are on this host, and fetching those that it lacks.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use usdtrec_dwarf::{DebugLink, SectionFile, has_section};
use usdtrec_format::{BuildId, debug_file_by_build_id, debug_files_by_link};

use crate::process::Dso;
use crate::symbols::image::{Binary, Image};

/// Where a file can be read that is not the one at its path: it is deleted, replaced, or in another mount namespace.
#[derive(Clone, Debug)]
pub struct FileView {
    /// The path in the trace.
    pub path: PathBuf,
    /// Its build-id, if it has one.
    pub build_id: Option<BuildId>,
    /// Path at which it can be read.
    pub at: PathBuf,
}

impl FileView {
    /// Whether it is this file of a trace.
    pub(crate) fn is_of(&self, dso: &Dso) -> bool {
        let same_build = dso.build_id.is_none() || dso.build_id == self.build_id;
        same_build && dso.path == self.path
    }
}

/// The program or library that a process mapped, with the build-id that it must have: at its path if that has the trace's build-id, else
/// in the build-id cache. Where the trace names no build-id, the file at the path is used.
pub(crate) fn program(buildid_dir: Option<&Path>, dso: &Dso) -> Option<Binary> {
    if !dso.path.is_absolute() {
        return None;
    }
    let id = dso.build_id;
    let in_place = Binary::open(&dso.path).filter(|binary| binary.parse(id).is_some());
    in_place.or_else(|| {
        let cached = cached(buildid_dir, id?, "elf")?;
        Binary::open(&cached).filter(|binary| binary.parse(id).is_some())
    })
}

/// A file of a build-id in the build-id cache.
pub(crate) fn cached(buildid_dir: Option<&Path>, id: BuildId, name: &str) -> Option<PathBuf> {
    let dir = buildid_dir?.join(".build-id");
    Some(dir.join(id.link_name()).join(name))
}

/// A file with debugging information.
pub(crate) struct DebugBinary {
    /// Where it was opened.
    pub(crate) path: PathBuf,
    pub(crate) binary: Binary,
}

impl DebugBinary {
    pub(crate) fn open(path: PathBuf, id: Option<BuildId>) -> Option<Self> {
        let binary = Binary::open(&path)?;
        binary.parse(id)?;
        has_section(&binary, ".debug_info").then_some(())?;
        Some(Self { path, binary })
    }

    /// The file with the debugging information of a program: the program, at `view` if that is said, or a separate file, where
    /// [`separate`] finds it.
    pub(crate) fn find(buildid_dir: Option<&Path>, dso: &Dso, view: Option<&Path>) -> Option<Self> {
        if !dso.path.is_absolute() {
            return None;
        }
        let of_dso = || cached(buildid_dir, dso.build_id?, "elf");
        // With a view, another file is at the path.
        let places = [Some(view.unwrap_or(&dso.path).to_owned()), of_dso()];
        let mut places = places.into_iter().flatten();
        if let Some(found) = places.find_map(|path| Self::open(path, dso.build_id)) {
            return Some(found);
        }
        let program = match view {
            Some(view) => Binary::open(view),
            None => program(buildid_dir, dso),
        };
        let program = program.filter(|file| file.parse(dso.build_id).is_some());
        let id = dso.build_id.or_else(|| program.as_ref()?.build_id());
        let of_build_id = id.and_then(|id| {
            let files = [
                cached(buildid_dir, id, "debug"),
                Some(debug_file_by_build_id(id)),
            ];
            let mut files = files.into_iter().flatten();
            files.find_map(|path| Self::open(path, Some(id)))
        });
        of_build_id
            .or_else(|| Self::linked(&dso.path, id, &DebugLink::from_file(program.as_ref()?)?))
    }

    fn linked(program: &Path, id: Option<BuildId>, link: &DebugLink) -> Option<Self> {
        let files = debug_files_by_link(program, &link.name);
        files.into_iter().find_map(|path| {
            let found = Self::open(path, None)?;
            link.is_of(id, &found.binary).then_some(found)
        })
    }
}

/// The symbols in the separate file of a program: that of its build-id in the build-id cache or among the system's debug files, else the one that
/// the program names, with the checksum that the program has of it.
pub(crate) fn separate(
    buildid_dir: Option<&Path>,
    dso: &Dso,
    program: Option<&Image>,
) -> Option<Image> {
    let id = dso.build_id.or(program.and_then(|image| image.build_id));
    let of_build_id = id.and_then(|id| {
        let files = [
            cached(buildid_dir, id, "debug"),
            Some(debug_file_by_build_id(id)),
        ];
        let images = files.iter().flatten();
        let mut images = images.filter_map(|path| Image::read(path, Some(id)));
        images.find(|image| image.complete)
    });
    let link = || program?.debug_link.as_ref();
    of_build_id.or_else(|| linked(&dso.path, id, link()?))
}

fn linked(program: &Path, id: Option<BuildId>, link: &DebugLink) -> Option<Image> {
    let files = debug_files_by_link(program, &link.name);
    files.iter().find_map(|path| {
        let binary = Binary::open(path)?;
        let image = Image::from_binary(&binary, None).filter(|image| image.complete)?;
        link.is_of(id, &binary).then_some(image)
    })
}

/// Fetches files that this host lacks.
pub trait FetchDebug: Debug + Send + Sync {
    /// The file with the debugging information and the symbols of a program with this build-id, which is on this host then; `None` if there is none.
    fn debug_info(&self, id: BuildId) -> Option<PathBuf>;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_linked_file_has_the_build_id_or_the_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let beside = dir.path().join(".debug");
        fs::create_dir(&beside).unwrap();
        fs::copy(&own, beside.join("app.debug")).unwrap();
        let binary = Binary::open(&own).unwrap();
        let checksum = crc32fast::hash(&fs::read(&own).unwrap());
        let own = Image::from_binary(&binary, None).unwrap().build_id;
        let is_found = |id, checksum| {
            let name = b"app.debug".to_vec();
            let link = DebugLink { name, checksum };
            linked(&dir.path().join("app"), id, &link).is_some()
        };
        assert!(is_found(None, checksum));
        assert!(!is_found(None, !checksum));
        let other: BuildId = "00ff".parse().unwrap();
        if own.is_some() {
            assert!(is_found(own, !checksum));
            assert!(!is_found(Some(other), checksum));
        }
        fs::rename(beside.join("app.debug"), dir.path().join("other.debug")).unwrap();
        assert!(!is_found(None, checksum));
    }
}

//! Where a file of a trace, and its separate file with debugging information, are on this host.

use std::path::{Path, PathBuf};

use usdtrec_format::{BuildId, debug_file_by_build_id, debug_files_by_link};

use crate::process::Dso;
use crate::symbols::image::{Binary, Image};
use crate::symbols::search::cached;

/// A program or library that a trace has hits or frames in, and where it is on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// Its path when it was recorded.
    pub path: PathBuf,
    /// Its build-id, if the trace has one.
    pub build_id: Option<BuildId>,
    /// A file of this host with this build-id: the one at `path`, or the one in the build-id cache.
    pub program: Option<PathBuf>,
    /// A separate file with debugging information of this build-id.
    pub debug: Option<PathBuf>,
}

impl CodeFile {
    /// Looks for a file with its build-id. Without a build-id no file is taken for it.
    pub(crate) fn find(buildid_dir: Option<&Path>, dso: &Dso) -> Self {
        let mut found = Self {
            path: dso.path.clone(),
            build_id: dso.build_id,
            program: None,
            debug: None,
        };
        let Some(id) = dso.build_id.filter(|_| dso.path.is_absolute()) else {
            return found;
        };
        let has_id = |path: &PathBuf| {
            let binary = Binary::open(path);
            binary.is_some_and(|binary| binary.parse(Some(id)).is_some())
        };
        let programs = [Some(dso.path.clone()), cached(buildid_dir, id, "elf")];
        found.program = programs.into_iter().flatten().find(has_id);
        let of_build_id = [
            cached(buildid_dir, id, "debug"),
            Some(debug_file_by_build_id(id)),
        ];
        let link = || Image::read(found.program.as_ref()?, Some(id))?.debug_link;
        let linked = || {
            let files = link().map(|link| debug_files_by_link(&dso.path, &link.name));
            files?.into_iter().find(has_id)
        };
        let of_build_id = of_build_id.into_iter().flatten().find(has_id);
        found.debug = of_build_id.or_else(linked);
        found
    }
}

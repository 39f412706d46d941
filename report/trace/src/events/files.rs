//! The files in which a trace has hits or frames, and where they and their separate files with debugging information are on this host.

use std::path::{Path, PathBuf};

use foldhash::HashSet;
use usdtrec_format::{BuildId, debug_file_by_build_id, debug_files_by_link};

use crate::error::ReportError;
use crate::events::fold::fold_until;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::process::{Dso, DsoId};
use crate::session::TraceSession;
use crate::symbols::image::{Binary, Image};
use crate::symbols::search::cached;

impl CodeFile {
    /// All files in which a trace has hits, or frames of their stacks, in the order of their paths and build-ids. They are looked for in
    /// their places and in the build-id cache `buildid_dir`.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn all(
        session: &TraceSession,
        buildid_dir: Option<&Path>,
    ) -> Result<Vec<Self>, ReportError> {
        let filter = SampleFilter::new(&EventSelection::default(), session)?;
        let folded = fold_until(
            session,
            &filter,
            || false,
            HashSet::<DsoId>::default,
            |files, resolver, target, sample| {
                resolver.each_place(
                    target,
                    sample,
                    |place| {
                        files.insert(place.file);
                    },
                    |_| (),
                );
            },
        );
        let files: HashSet<DsoId> = folded.states.into_iter().flatten().collect();
        let files = files.into_iter();
        let mut files: Vec<&Dso> = files.filter_map(|id| session.mappings().file(id)).collect();
        files.sort_unstable_by_key(|file| (&file.path, file.build_id));
        Ok(files
            .into_iter()
            .map(|file| Self::find(buildid_dir, file))
            .collect())
    }
}

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

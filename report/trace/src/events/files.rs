//! The files in which a trace has hits or frames.

use std::path::Path;

use foldhash::HashSet;

use crate::error::ReportError;
use crate::events::fold::fold_until;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::process::{Dso, DsoId};
use crate::session::TraceSession;
use crate::symbols::code_file::CodeFile;

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

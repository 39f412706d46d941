//! The unwind tables of a trace's files.

use std::path::{Path, PathBuf};

use usdtrec_unwind::{Code, Segments, UnwindTables};

use crate::process::{Dso, DsoId};
use crate::symbols::per_file::PerFile;
use crate::symbols::search;
use crate::unwind::cut::FileCut;

/// The unwind tables of a trace's files, each read when first needed.
#[derive(Debug)]
pub(crate) struct TraceTables {
    buildid_dir: Option<PathBuf>,
    files: PerFile<Option<FileTables>>,
}

/// The tables of a file.
#[derive(Debug)]
struct FileTables {
    tables: UnwindTables,
    segments: Segments,
}

impl TraceTables {
    pub(crate) fn new(buildid_dir: Option<&Path>, files: &[Dso]) -> Self {
        Self {
            buildid_dir: buildid_dir.map(Path::to_owned),
            files: PerFile::new(files),
        }
    }

    /// Appends files to those that are known.
    pub(crate) fn extend(&mut self, files: &[Dso]) {
        self.files.extend(files);
    }

    /// Keeps these files alone, in this order.
    pub(crate) fn keep(&mut self, files: &[DsoId]) {
        self.files.keep(files);
    }

    /// The code at a file offset; `None` if there is no file with the build-id of the trace, or nothing is there.
    pub(crate) fn code(&self, file: DsoId, offset: u64) -> Option<Code<'_>> {
        let found = self.files.get(file, |dso| self.read(dso))?.as_ref()?;
        Some(Code {
            tables: &found.tables,
            address: found.segments.address(offset)?,
        })
    }

    /// The error in a file as a whole; `None` if it has unwind tables.
    pub(crate) fn wrong(&self, file: DsoId) -> Option<FileCut> {
        match self.files.get(file, |dso| self.read(dso))? {
            None => Some(FileCut::NotRead),
            Some(found) => found.tables.is_empty().then_some(FileCut::NoTable),
        }
    }

    fn read(&self, dso: &Dso) -> Option<FileTables> {
        let binary = search::program(self.buildid_dir.as_deref(), dso)?;
        let file = binary.parse(dso.build_id)?;
        Some(FileTables {
            tables: UnwindTables::read(&file)?,
            segments: Segments::from_file(&file),
        })
    }
}

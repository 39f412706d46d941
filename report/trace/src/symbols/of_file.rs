//! The symbols of one file that no trace names.

use std::path::{Path, PathBuf};

use usdtrec_format::{BuildId, FunctionPlace};

use crate::process::{Dso, DsoId};
use crate::symbols::Symbols;

/// The symbols of one file, which are read when first requested, from where [`Symbols`] takes those of a trace's files.
#[derive(Debug)]
pub struct FileSymbols(Symbols);

impl FileSymbols {
    /// Symbols of the file at a path, if it has this build-id; `buildid_dir` is the build-id cache (`~/.debug`), if there is one.
    #[must_use]
    pub fn new(buildid_dir: Option<&Path>, path: PathBuf, build_id: Option<BuildId>) -> Self {
        Self(Symbols::new(
            buildid_dir,
            &[Dso {
                path,
                build_id,
                is_data: false,
            }],
        ))
    }

    /// The function at a file offset; `None` if the file cannot be read or has no symbol there.
    #[must_use]
    pub fn function(&self, offset: u64) -> Option<FunctionPlace> {
        let symbol = self.0.find(DsoId(0), offset)?;
        Some(FunctionPlace {
            name: symbol.name.to_string(),
            offset: symbol.offset,
        })
    }
}

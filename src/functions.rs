//! The functions in which sites are, by the symbols that reports use.

use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::{ffi::OsString, path::PathBuf};

use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_format::FunctionPlace;
use usdtrec_report::FileSymbols;

/// Symbols of open files, each read when first needed.
pub(crate) struct Functions<'d> {
    buildid_dir: Option<&'d Path>,
    files: HashMap<FileId, FileSymbols>,
}

impl<'d> Functions<'d> {
    /// `buildid_dir` is the build-id cache, if there is one.
    pub(crate) fn new(buildid_dir: Option<&'d Path>) -> Self {
        Self {
            buildid_dir,
            files: HashMap::new(),
        }
    }

    /// The function at an offset of an open file, if a symbol says it.
    pub(crate) fn at(&mut self, file: &ObjectFile, offset: u64) -> Option<FunctionPlace> {
        let symbols = self.files.entry(file.id()).or_insert_with(|| {
            // Another file may be at its path now.
            let path = PathBuf::from(OsString::from_vec(file.kernel_path().into_bytes()));
            let path = match FileId::from_path(&path) {
                // Without /proc, and if the file is still there.
                None if FileId::from_path(file.path()) == Some(file.id()) => file.path().to_owned(),
                _ => path,
            };
            FileSymbols::new(self.buildid_dir, path, file.build_id())
        });
        symbols.function(offset)
    }
}

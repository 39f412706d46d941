//! The functions in which sites are, by the symbols that reports use.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_format::FunctionPlace;
use usdtrec_report::FileSymbols;

/// Maximum size of a file of which a copy is made, because a helper reads it, bytes.
const MAX_COPIED: u64 = 256 << 20;

/// Symbols of open files, each read when first needed.
pub(crate) struct Functions<'d> {
    buildid_dir: Option<&'d Path>,
    files: HashMap<FileId, FileSymbols>,
    /// The files, open for their symbols.
    readable: Vec<File>,
}

impl<'d> Functions<'d> {
    /// `buildid_dir` is the build-id cache, if there is one.
    pub(crate) fn new(buildid_dir: Option<&'d Path>) -> Self {
        Self {
            buildid_dir,
            files: HashMap::new(),
            readable: Vec::new(),
        }
    }

    /// The function at an offset of an open file, if a symbol says it.
    pub(crate) fn at(&mut self, file: &ObjectFile, offset: u64) -> Option<FunctionPlace> {
        let symbols = self.files.entry(file.id()).or_insert_with(|| {
            // Another file may be at its path now.
            let readable = file.contents().local_copy(MAX_COPIED).ok();
            let number = readable.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let path = PathBuf::from(format!("/proc/self/fd/{number}"));
            self.readable.extend(readable);
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

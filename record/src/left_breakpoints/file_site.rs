//! A site of a file.

use usdtrec_buildid_cache::elf::FileId;

/// A site of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileSite {
    pub(crate) file: FileId,
    /// File offset.
    pub(crate) offset: u64,
}

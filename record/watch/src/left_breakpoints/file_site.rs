//! A site of a file.

use usdtrec_buildid_cache::elf::FileId;

/// A site of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileSite {
    /// The file.
    pub file: FileId,
    /// File offset.
    pub offset: u64,
}

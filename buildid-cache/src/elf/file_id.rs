//! The identity of a file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device (`st_dev`).
    pub device: u64,
    /// Inode (`st_ino`).
    pub inode: u64,
}

impl FileId {
    /// The identity of the file at a path, following links; `None` if it cannot be accessed.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self::from(&metadata))
    }
}

impl From<&std::fs::Metadata> for FileId {
    fn from(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

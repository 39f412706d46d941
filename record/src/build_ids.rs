//! Build-ids of files that processes map, read once for each file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf;
use usdtrec_format::BuildId;

/// A file as mappings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// Major number of its device.
    pub(crate) major: u32,
    /// Minor number.
    pub(crate) minor: u32,
    /// Inode.
    pub(crate) inode: u64,
}

/// Files that are known at most.
const MOST_KNOWN: usize = 1 << 16;

/// Build-ids that are known already, and the files that have none.
#[derive(Debug, Default)]
pub(crate) struct BuildIds {
    known: HashMap<FileId, Option<BuildId>>,
}

impl BuildIds {
    /// The build-id of the file that process `pid` maps from `path`. `None` if it has none, or cannot be reached any more.
    pub(crate) fn of(&mut self, pid: i32, path: &[u8], file: FileId) -> Option<BuildId> {
        if let Some(build_id) = self.known.get(&file) {
            return *build_id;
        }
        let path = Path::new(OsStr::from_bytes(path));
        let below = path.strip_prefix("/").ok()?;
        // The process's own view of the file system first; it may have ended, or live in another than ours.
        let views = [
            PathBuf::from(format!("/proc/{pid}/root")).join(below),
            path.to_owned(),
        ];
        let reached = views
            .iter()
            .find(|view| view.metadata().is_ok_and(|found| found.ino() == file.inode))?;
        let build_id = elf::build_id(reached).ok().flatten();
        if self.known.len() >= MOST_KNOWN {
            // A recording may see new files for ever; those that are mapped again are read again.
            self.known.clear();
        }
        self.known.insert(file, build_id);
        build_id
    }
}

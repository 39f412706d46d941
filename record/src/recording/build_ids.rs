//! Build-ids of the files that processes map, read once for each file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_format::BuildId;

/// A file as mappings identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// Major number of its device.
    pub(crate) major: u32,
    /// Minor number.
    pub(crate) minor: u32,
    /// Inode.
    pub(crate) inode: u64,
}

/// Maximum number of known files.
const MAX_KNOWN_FILES: usize = 1 << 16;

/// Maximum number of files that are kept open until they are taken.
const MAX_NEW_FILES: usize = 256;

/// An ELF file that a process mapped.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// The process.
    pub(crate) pid: i32,
    /// Path of the file, as the process sees it.
    pub(crate) path: PathBuf,
    /// The file.
    pub(crate) object: ObjectFile,
}

/// Known build-ids; `None` for files without one.
#[derive(Debug, Default)]
pub(crate) struct BuildIds {
    known: HashMap<FileId, Option<BuildId>>,
    /// Files that were read and not taken yet; `None` if they are not kept.
    new: Option<Vec<NewFile>>,
}

impl BuildIds {
    /// Keeps the files that are read, until they are taken.
    pub(crate) fn that_keep_files() -> Self {
        Self {
            new: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The files that were read since the last call; of very many, the first ones.
    pub(crate) fn take_new(&mut self) -> Vec<NewFile> {
        self.new.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The build-id of the file that process `pid` maps from `path`. `None` if it has no build-id, or cannot be opened any more.
    pub(crate) fn of(&mut self, pid: i32, path: &[u8], file: FileId) -> Option<BuildId> {
        if let Some(build_id) = self.known.get(&file) {
            return *build_id;
        }
        let path = Path::new(OsStr::from_bytes(path));
        let below = path.strip_prefix("/").ok()?;
        // First through the root directory of the process: it may have another root, or have ended.
        let views = [
            PathBuf::from(format!("/proc/{pid}/root")).join(below),
            path.to_owned(),
        ];
        self.read(pid, path, &views, file)
    }

    /// The build-id of a deleted file, which is opened by the mapping's name in `map_files`.
    pub(crate) fn of_deleted(
        &mut self,
        pid: i32,
        path: &[u8],
        link: &str,
        file: FileId,
    ) -> Option<BuildId> {
        if let Some(build_id) = self.known.get(&file) {
            return *build_id;
        }
        let view = PathBuf::from(format!("/proc/{pid}/map_files/{link}"));
        self.read(pid, Path::new(OsStr::from_bytes(path)), &[view], file)
    }

    /// Reads the build-id through the first path that leads to the file.
    fn read(&mut self, pid: i32, path: &Path, views: &[PathBuf], file: FileId) -> Option<BuildId> {
        // Opened once, so that the file with the mapping's inode is the one that is read.
        let opened = views.iter().map(|view| ObjectFile::open(view));
        let mut reached = opened.filter(|opened| match opened {
            Ok(opened) => opened.id().inode == file.inode,
            // The file exists, and is not an ELF file.
            Err(error) => !matches!(error, ElfError::Io(_)),
        });
        let object = reached.next()?.ok();
        let build_id = object.as_ref().and_then(ObjectFile::build_id);
        if let (Some(new), Some(object)) = (&mut self.new, object)
            && new.len() < MAX_NEW_FILES
        {
            new.push(NewFile {
                pid,
                path: path.to_owned(),
                object,
            });
        }
        if self.known.len() >= MAX_KNOWN_FILES {
            // A recording may see new files for ever; files that are mapped again are read again.
            self.known.clear();
        }
        self.known.insert(file, build_id);
        build_id
    }
}

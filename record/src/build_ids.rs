//! Build-ids of files that processes map, read once for each file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
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

/// Files that are kept open until they are taken.
const MOST_NEW: usize = 256;

/// An ELF file that a process mapped, when its build-id was read.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// The process.
    pub(crate) pid: i32,
    /// What the process calls it.
    pub(crate) path: PathBuf,
    /// The file.
    pub(crate) object: ObjectFile,
}

/// Build-ids that are known already, and the files that have none.
#[derive(Debug, Default)]
pub(crate) struct BuildIds {
    known: HashMap<FileId, Option<BuildId>>,
    /// Files that were read since the last look, where they are asked for.
    new: Option<Vec<NewFile>>,
}

impl BuildIds {
    /// Of which the files can be taken after they were read.
    pub(crate) fn that_keep_files() -> Self {
        Self {
            new: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The files that were read since the last time; of very many, the first.
    pub(crate) fn take_new(&mut self) -> Vec<NewFile> {
        self.new.as_mut().map(std::mem::take).unwrap_or_default()
    }

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
        self.read(pid, path, &views, file)
    }

    /// The same of a file that was deleted, by the mapping's name in `map_files`.
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

    /// Reads it of the first view that leads to the file.
    fn read(&mut self, pid: i32, path: &Path, views: &[PathBuf], file: FileId) -> Option<BuildId> {
        // Opened once: what has the mapping's inode is what is read.
        let opened = views.iter().map(|view| ObjectFile::open(view));
        let mut reached = opened.filter(|opened| match opened {
            Ok(opened) => opened.id().inode == file.inode,
            // It is there, and no ELF file.
            Err(error) => !matches!(error, ElfError::Io(_)),
        });
        let object = reached.next()?.ok();
        let build_id = object.as_ref().and_then(ObjectFile::build_id);
        if let (Some(new), Some(object)) = (&mut self.new, object)
            && new.len() < MOST_NEW
        {
            new.push(NewFile {
                pid,
                path: path.to_owned(),
                object,
            });
        }
        if self.known.len() >= MOST_KNOWN {
            // A recording may see new files for ever; those that are mapped again are read again.
            self.known.clear();
        }
        self.known.insert(file, build_id);
        build_id
    }
}

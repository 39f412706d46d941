//! Files mapped by a running process, and their probes.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat};
use usdtrec_format::escape::shown;

use crate::elf::{ElfError, ObjectFile, ProbeScan};
use crate::file_mapping::FileMapping;
use crate::open_path;

/// A file with probes that a process maps.
#[derive(Clone, Debug)]
pub struct MappedFile {
    /// The mapped file. Its path is the one in the process's maps if it leads to the file from here, else that path below
    /// `/proc/PID/root`, else the path with ` (deleted)` after it.
    pub file: Arc<ObjectFile>,
    /// The probes of the file.
    pub scan: ProbeScan,
    /// Whether the file was deleted or replaced after it was mapped.
    pub deleted: bool,
}

/// The files that a process maps.
#[derive(Debug, Default)]
pub struct ProcessFiles {
    /// Files with probes, in the order of `/proc/PID/maps`, each file once.
    pub mapped: Vec<MappedFile>,
    /// Files that could not be read.
    pub unreadable: Vec<UnreadableFile>,
}

/// A mapped file that could not be read.
#[derive(Debug)]
pub struct UnreadableFile {
    /// Its path in the process's maps.
    pub path: PathBuf,
    /// Error of reading it.
    pub error: ElfError,
}

/// Reads the probes of all files that a process maps.
///
/// # Errors
/// `/proc/PID/maps` cannot be read: the process does not exist, or permission is denied.
pub fn binaries(pid: u32) -> io::Result<ProcessFiles> {
    let process = OpenProcess::open(pid)?;
    let mut seen = HashSet::new();
    let mut mappings = process.mappings()?;
    mappings.retain(|map| seen.insert((map.device, map.inode)));
    let outcomes: Vec<_> = mappings
        .par_iter()
        .map(|mapping| (mapping, process.read(mapping)))
        .collect();
    let mut files = ProcessFiles::default();
    for (mapping, outcome) in outcomes {
        match outcome {
            Ok(mapped) if mapped.has_nothing() => {}
            Ok(mapped) => files.mapped.push(mapped),
            Err(error) if error.is_other_file() => {}
            Err(error) => files.unreadable.push(UnreadableFile {
                path: mapping.path.clone(),
                error,
            }),
        }
    }
    Ok(files)
}

/// Opens the file of a mapping of a process, and reads its headers.
///
/// It is opened by the mapping's link in `/proc/PID/map_files`: no path that a process chose is opened. Without CAP_CHECKPOINT_RESTORE it is
/// opened by its path below the root directory of the process, if that leads to the same inode number. The path of a file that
/// [cannot have probes](ObjectFile::may_have_probes) is that of the mapping.
///
/// # Errors
/// [`ElfError`].
pub fn open_mapped(pid: u32, mapping: &FileMapping) -> Result<ObjectFile, ElfError> {
    let process = OpenProcess::open(pid)?;
    let (proc, mapping) = (&process.directory, Mapping(mapping));
    let (file, is_inside) = mapping.open(proc, process.handle.as_fd())?;
    let file = ObjectFile::from_file(file, mapping.0.path.clone())?;
    Ok(match file.may_have_probes() {
        true => mapping.named(file, proc, is_inside).file,
        false => file,
    })
}

/// Opens the file of a mapping of a process that has ended: by its path, if that leads to the same device and inode number from here.
///
/// # Errors
/// [`ElfError`], also if it is another file.
pub fn open_formerly_mapped(mapping: &FileMapping) -> Result<ObjectFile, ElfError> {
    let path = &mapping.path;
    let found = openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    );
    let found = found.map_err(io::Error::from)?;
    let id = rustix::fs::fstat(&found).map_err(io::Error::from)?;
    let device = rustix::fs::makedev(mapping.device.major, mapping.device.minor);
    if (id.st_dev, id.st_ino) != (device, mapping.inode) {
        return Err(ElfError::Io(io::ErrorKind::NotFound.into()));
    }
    ObjectFile::from_file(open_path::open_readable(found.as_fd(), path)?, path.clone())
}

impl MappedFile {
    /// Whether it has neither probes nor damaged notes.
    pub(crate) fn has_nothing(&self) -> bool {
        self.scan.binary.probes.is_empty() && self.scan.damaged.is_empty()
    }
}

/// A process whose files are read. Files opened relative to the handle belong to this process even if its id is reused.
pub(crate) struct OpenProcess {
    directory: PathBuf,
    handle: OwnedFd,
}

impl OpenProcess {
    /// # Errors
    /// The process does not exist.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, &directory, flags, Mode::empty())?;
        Ok(Self { directory, handle })
    }

    /// The content of one of its files in `/proc/PID`.
    ///
    /// # Errors
    /// The file cannot be read: the process has ended, or permission is denied.
    pub(crate) fn content(&self, name: &CStr) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut content = Vec::new();
        File::from(openat(&self.handle, name, flags, Mode::empty())?).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Its mappings of files.
    ///
    /// # Errors
    /// As of [`Self::content`].
    pub(crate) fn mappings(&self) -> io::Result<Vec<FileMapping>> {
        Ok(FileMapping::parse_all(&self.content(c"maps")?).collect())
    }

    /// Whether it still has a mapping.
    pub(crate) fn maps(&self, mapping: &FileMapping) -> bool {
        self.mappings()
            .is_ok_and(|mappings| mappings.contains(mapping))
    }

    /// The number of its mount namespace; `None` without permission.
    pub(crate) fn mount_namespace(&self) -> Option<u64> {
        let found = rustix::fs::statat(&self.handle, c"ns/mnt", AtFlags::empty()).ok()?;
        Some(found.st_ino)
    }

    /// The user that its files in `/proc` belong to: its effective one, if it may be traced by that user (proc(5)).
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn owner(&self) -> io::Result<u32> {
        let found = rustix::fs::statat(&self.handle, c"maps", AtFlags::empty())?;
        Ok(found.st_uid)
    }

    /// Reads a file that it maps.
    ///
    /// # Errors
    /// [`ElfError`], also if the file that is mapped cannot be opened.
    pub(crate) fn read(&self, mapping: &FileMapping) -> Result<MappedFile, ElfError> {
        let mapping = Mapping(mapping);
        mapping.read(&self.directory, self.handle.as_fd())
    }
}

/// The file of a mapping.
struct OpenedMapping {
    file: ObjectFile,
    /// Whether it was deleted or replaced after it was mapped.
    deleted: bool,
}

/// A file that a process maps.
struct Mapping<'a>(&'a FileMapping);

impl Mapping<'_> {
    fn read(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<MappedFile, ElfError> {
        let OpenedMapping { file, deleted } = self.open_object(proc, handle)?;
        Ok(MappedFile {
            scan: file.scan()?,
            file: Arc::new(file),
            deleted,
        })
    }

    /// Opens the mapped file and finds a path for it.
    fn open_object(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<OpenedMapping, ElfError> {
        let (file, is_inside) = self.open(proc, handle)?;
        let file = ObjectFile::from_file(file, self.0.path.clone())?;
        Ok(self.named(file, proc, is_inside))
    }

    /// Finds a path for a mapped file.
    fn named(&self, file: ObjectFile, proc: &Path, is_inside: bool) -> OpenedMapping {
        let id = file.id();
        let inside = proc
            .join("root")
            .join(self.0.path.strip_prefix("/").unwrap_or(&self.0.path));
        let is_it = |path: &PathBuf| open_path::id(path) == Some(id);
        let mut paths = [self.0.path.clone(), inside].into_iter();
        let path = (!self.0.deleted).then(|| paths.find(is_it)).flatten();
        let deleted = path.is_none() && !is_inside;
        let path = path.unwrap_or_else(|| {
            let mut path = self.0.path.clone().into_os_string();
            path.push(" (deleted)");
            path.into()
        });
        OpenedMapping {
            file: file.named(path),
            deleted,
        }
    }

    /// Opens the mapped file. The flag says whether it was found by its path.
    fn open(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<(File, bool), ElfError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let link = Path::new("map_files").join(self.0.map_files_name());
        let error = match openat(handle, &link, flags, Mode::empty()) {
            Ok(found) => {
                return Ok((
                    open_path::open_readable(found.as_fd(), &proc.join(link))?,
                    false,
                ));
            }
            Err(error) => io::Error::from(error),
        };
        // map_files needs CAP_CHECKPOINT_RESTORE. Without it, the path is used if it leads to the same inode number.
        let below = self.0.path.strip_prefix("/").unwrap_or(&self.0.path);
        let by_path = openat(handle, c"root", flags, Mode::empty()).map_err(io::Error::from);
        let by_path =
            by_path.and_then(|root| open_path::below(root.as_fd(), below, ResolveFlags::IN_ROOT));
        if !self.0.deleted
            && let Ok(found) = by_path
            && rustix::fs::fstat(&found).is_ok_and(|found| found.st_ino == self.0.inode)
        {
            return Ok((
                open_path::open_readable(found.as_fd(), &proc.join("root").join(below))?,
                true,
            ));
        }
        Err(ElfError::Io(io::Error::new(
            error.kind(),
            format!(
                "{} is not the file that is mapped, and {}: {error}",
                shown(&self.0.path),
                shown(&proc.join(link))
            ),
        )))
    }
}

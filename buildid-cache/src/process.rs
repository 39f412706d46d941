//! Files mapped by a running process, and their probes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat};
use usdtrec_format::escape::shown;

use crate::elf::{ElfError, FileId, ObjectFile, ProbeScan};
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
    let proc = PathBuf::from(format!("/proc/{pid}"));
    // Files opened relative to this handle belong to this process even if its id is reused.
    let handle = openat(
        CWD,
        &proc,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut maps = Vec::new();
    File::from(openat(
        &handle,
        c"maps",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
    .read_to_end(&mut maps)?;
    let mut seen = HashSet::new();
    let mappings: Vec<Mapping> = FileMapping::parse_all(&maps)
        .filter(|map| seen.insert((map.device, map.inode)))
        .map(Mapping)
        .collect();
    let outcomes: Vec<_> = mappings
        .par_iter()
        .map(|mapping| (mapping, mapping.read(&proc, handle.as_fd())))
        .collect();
    let mut files = ProcessFiles::default();
    for (mapping, outcome) in outcomes {
        match outcome {
            Ok(mapped)
                if mapped.scan.binary.probes.is_empty() && mapped.scan.damaged.is_empty() => {}
            Ok(mapped) => files.mapped.push(mapped),
            Err(error) if error.is_other_file() => {}
            Err(error) => files.unreadable.push(UnreadableFile {
                path: mapping.0.path.clone(),
                error,
            }),
        }
    }
    Ok(files)
}

/// A file that a process maps.
struct Mapping(FileMapping);

impl Mapping {
    fn read(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<MappedFile, ElfError> {
        let (file, is_inside) = self.open(proc, handle)?;
        let id = FileId::from(&file.metadata()?);
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
        let file = ObjectFile::from_file(file, path)?;
        Ok(MappedFile {
            scan: file.scan()?,
            file: Arc::new(file),
            deleted,
        })
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

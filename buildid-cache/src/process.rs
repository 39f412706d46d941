//! The files that a running process maps, and their probes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat};
use usdtrec_format::escape::shown;

use crate::elf::{ElfError, FileId, ObjectFile, Scan};
use crate::maps::Map;
use crate::reach;

/// A file that a process maps and that carries probes.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The file that is mapped. Its path is the process's where that leads to it from here, else one below
    /// `/proc/PID/root`, else the process's with ` (deleted)` after it.
    pub file: Arc<ObjectFile>,
    /// What was found in it.
    pub scan: Scan,
    /// Whether the file was deleted, or replaced by another at its path, since it was mapped.
    pub deleted: bool,
}

/// What a process maps.
#[derive(Debug, Default)]
pub struct ProcessFiles {
    /// Files with probes, in the order of the maps, each file once.
    pub mapped: Vec<Mapped>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, ElfError)>,
}

/// Reads the probes of all files that a process maps.
///
/// # Errors
/// If `/proc/PID/maps` cannot be read: no such process, or no permission to look into it.
pub fn binaries(pid: u32) -> io::Result<ProcessFiles> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    // What is opened below this handle is the same process's also when another gets its id.
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
    let mappings: Vec<Mapping> = Map::all(&maps)
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
            Err(error) => files.unreadable.push((mapping.0.path.clone(), error)),
        }
    }
    Ok(files)
}

/// A file that a process maps.
struct Mapping(Map);

impl Mapping {
    fn read(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<Mapped, ElfError> {
        let (file, is_inside) = self.open(proc, handle)?;
        let id = FileId::from(&file.metadata()?);
        let inside = proc
            .join("root")
            .join(self.0.path.strip_prefix("/").unwrap_or(&self.0.path));
        let is_it = |path: &PathBuf| reach::id(path) == Some(id);
        let mut paths = [self.0.path.clone(), inside].into_iter();
        let path = (!self.0.deleted).then(|| paths.find(is_it)).flatten();
        let deleted = path.is_none() && !is_inside;
        let path = path.unwrap_or_else(|| {
            let mut path = self.0.path.clone().into_os_string();
            path.push(" (deleted)");
            path.into()
        });
        let file = ObjectFile::from_file(file, path)?;
        Ok(Mapped {
            scan: file.scan()?,
            file: Arc::new(file),
            deleted,
        })
    }

    /// Opens the very file that is mapped. The second is whether it was found by its path.
    fn open(&self, proc: &Path, handle: BorrowedFd<'_>) -> Result<(File, bool), ElfError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let link = Path::new("map_files").join(self.0.link());
        let error = match openat(handle, &link, flags, Mode::empty()) {
            Ok(found) => return Ok((reach::readable(found.as_fd(), &proc.join(link))?, false)),
            Err(error) => io::Error::from(error),
        };
        // map_files takes privileges (CAP_CHECKPOINT_RESTORE); the path and the inode's number then have to do.
        let below = self.0.path.strip_prefix("/").unwrap_or(&self.0.path);
        let by_path = openat(handle, c"root", flags, Mode::empty()).map_err(io::Error::from);
        let by_path =
            by_path.and_then(|root| reach::below(root.as_fd(), below, ResolveFlags::IN_ROOT));
        if !self.0.deleted
            && let Ok(found) = by_path
            && rustix::fs::fstat(&found).is_ok_and(|found| found.st_ino == self.0.inode)
        {
            return Ok((
                reach::readable(found.as_fd(), &proc.join("root").join(below))?,
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

//! Searches a directory tree for files with probes.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::ResolveFlags;
use walkdir::{DirEntry, WalkDir};

use crate::elf::{ElfError, ObjectFile, ProbeScan};
use crate::open_path::{self, OpenedDirectory};

/// An event of [`walk`].
#[derive(Debug)]
pub enum WalkEvent {
    /// A regular file of any kind was examined.
    File,
    /// A file has probes, or notes that cannot be read.
    Probes(ProbeScan, Box<ObjectFile>),
    /// A file or directory could not be read, or is a damaged ELF file.
    Unreadable(PathBuf, ElfError),
}

/// Examines every regular file below a directory, in parallel. `visit` is called from several threads.
///
/// Symbolic links below the directory are not followed. Pseudo file systems (`/proc`, `/sys`, …), separate debug files and copies in a
/// build-id cache are skipped. Paths have all links resolved except for magic links of `/proc` (`/proc/PID/root`, …).
///
/// # Errors
/// The directory itself cannot be read.
pub fn walk(dir: &Path, visit: &(dyn Fn(WalkEvent) + Sync)) -> std::io::Result<()> {
    let OpenedDirectory { handle, path: name } = open_path::directory(dir)?;
    // Walk the open directory, unless /proc is not mounted.
    let by_number = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    let root = if by_number.exists() {
        by_number
    } else {
        name.clone()
    };
    std::fs::read_dir(&root)?;
    let tree = Tree {
        handle,
        root,
        name,
        visit,
    };
    let mut devices = Devices::default();
    let entries = WalkDir::new(&tree.root)
        .into_iter()
        .filter_entry(move |entry| !entry.file_type().is_dir() || !devices.is_pseudo(entry));
    entries.par_bridge().for_each(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() => tree.examine(entry.path()),
        Ok(_) => {}
        Err(error) => {
            let path = error.path().unwrap_or(&tree.root);
            let (_, name) = tree.names(path);
            visit(WalkEvent::Unreadable(
                name,
                std::io::Error::from(error).into(),
            ));
        }
    });
    Ok(())
}

/// The directory tree.
struct Tree<'a> {
    handle: OwnedFd,
    /// The path that is walked.
    root: PathBuf,
    /// The path for messages.
    name: PathBuf,
    visit: &'a (dyn Fn(WalkEvent) + Sync),
}

impl Tree<'_> {
    /// The path of an entry relative to the directory, and its path for messages.
    fn names<'p>(&self, path: &'p Path) -> (&'p Path, PathBuf) {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let name = match below.as_os_str().is_empty() {
            true => self.name.clone(),
            false => self.name.join(below),
        };
        (below, name)
    }

    fn examine(&self, path: &Path) {
        let (below, name) = self.names(path);
        match self
            .open(below, name.clone())
            .and_then(|file| Ok((file.scan()?, file)))
        {
            Ok((scan, _)) if scan.debug_file || is_cached_copy(&scan) => {}
            Ok((scan, _)) if scan.binary.probes.is_empty() && scan.damaged.is_empty() => {}
            Ok((scan, file)) => (self.visit)(WalkEvent::Probes(scan, Box::new(file))),
            Err(error) if error.is_other_file() => {}
            Err(error) => (self.visit)(WalkEvent::Unreadable(name, error)),
        }
        (self.visit)(WalkEvent::File);
    }

    fn open(&self, below: &Path, name: PathBuf) -> Result<ObjectFile, ElfError> {
        let handle = open_path::below(self.handle.as_fd(), below, ResolveFlags::NO_SYMLINKS)?;
        let file = open_path::open_readable(handle.as_fd(), &name)?;
        ObjectFile::from_file(file, name)
    }
}

/// Whether a file is a copy in a build-id cache: `…/BUILD-ID/elf`.
fn is_cached_copy(scan: &ProbeScan) -> bool {
    let path = &scan.binary.path;
    let parent = path.parent().and_then(Path::file_name);
    path.file_name().is_some_and(|name| name == "elf")
        && scan
            .binary
            .build_id
            .is_some_and(|id| parent.is_some_and(|parent| parent == id.to_string().as_str()))
}

/// The pseudo file systems among the devices seen so far.
#[derive(Default)]
struct Devices {
    known: HashMap<u64, bool>,
}

impl Devices {
    fn is_pseudo(&mut self, dir: &DirEntry) -> bool {
        let Ok(metadata) = dir.metadata() else {
            return false;
        };
        *self
            .known
            .entry(metadata.dev())
            .or_insert_with(|| is_pseudo(dir.path()))
    }
}

/// Whether a directory is in a pseudo file system (`linux/magic.h`), from which programs and libraries are never loaded.
fn is_pseudo(dir: &Path) -> bool {
    const PROC: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    const DEVPTS: u64 = 0x1cd1;
    const CGROUP: u64 = 0x0027_e0eb;
    const CGROUP2: u64 = 0x6367_7270;
    const DEBUGFS: u64 = 0x6462_6720;
    const TRACEFS: u64 = 0x7472_6163;
    const SECURITYFS: u64 = 0x7363_6673;
    const BPF: u64 = 0xcafe_4a11;
    const PSTORE: u64 = 0x6165_676c;
    rustix::fs::statfs(dir).is_ok_and(|found| {
        matches!(
            found.f_type as u64,
            PROC | SYSFS
                | DEVPTS
                | CGROUP
                | CGROUP2
                | DEBUGFS
                | TRACEFS
                | SECURITYFS
                | BPF
                | PSTORE
        )
    })
}

//! Looking through a directory tree for files that carry probes.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::ResolveFlags;
use walkdir::{DirEntry, WalkDir};

use crate::elf::{ElfError, ObjectFile, Scan};
use crate::reach;

/// What happens on the way.
#[derive(Debug)]
pub enum Step {
    /// A file was looked at, of whatever kind.
    File,
    /// A file carries probes, or notes that cannot be read.
    Probes(Scan, Box<ObjectFile>),
    /// A file or directory could not be read, or is a damaged ELF file.
    Unreadable(PathBuf, ElfError),
}

/// Looks at every regular file below a directory, in parallel, and calls `visit` from several threads.
///
/// Symbolic links below the directory are not followed; file systems that the kernel makes up (`/proc`,
/// `/sys`, …), separate debug files and copies in a build-id cache are passed over. `visit` gets paths with all
/// links resolved but those of a process below `/proc` (`/proc/PID/root`, …).
///
/// # Errors
/// If the directory itself cannot be read.
pub fn walk(dir: &Path, visit: &(dyn Fn(Step) + Sync)) -> std::io::Result<()> {
    let (handle, name) = reach::directory(dir)?;
    // Without /proc there is nothing that a path could be mistaken for.
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
        .filter_entry(move |entry| !entry.file_type().is_dir() || !devices.is_made_up(entry));
    entries.par_bridge().for_each(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() => tree.look(entry.path()),
        Ok(_) => {}
        Err(error) => {
            let path = error.path().unwrap_or(&tree.root);
            let (_, name) = tree.names(path);
            visit(Step::Unreadable(name, std::io::Error::from(error).into()));
        }
    });
    Ok(())
}

/// A directory tree that is walked.
struct Tree<'a> {
    handle: OwnedFd,
    /// The path by which it is walked.
    root: PathBuf,
    /// What it is called.
    name: PathBuf,
    visit: &'a (dyn Fn(Step) + Sync),
}

impl Tree<'_> {
    /// The path of an entry below the directory, and what the entry is called.
    fn names<'p>(&self, path: &'p Path) -> (&'p Path, PathBuf) {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let name = match below.as_os_str().is_empty() {
            true => self.name.clone(),
            false => self.name.join(below),
        };
        (below, name)
    }

    fn look(&self, path: &Path) {
        let (below, name) = self.names(path);
        match self
            .open(below, name.clone())
            .and_then(|file| Ok((file.scan()?, file)))
        {
            Ok((scan, _)) if scan.debug_file || is_cached_copy(&scan) => {}
            Ok((scan, _)) if scan.binary.probes.is_empty() && scan.damaged.is_empty() => {}
            Ok((scan, file)) => (self.visit)(Step::Probes(scan, Box::new(file))),
            Err(error) if error.is_other_file() => {}
            Err(error) => (self.visit)(Step::Unreadable(name, error)),
        }
        (self.visit)(Step::File);
    }

    fn open(&self, below: &Path, name: PathBuf) -> Result<ObjectFile, ElfError> {
        let handle = reach::below(self.handle.as_fd(), below, ResolveFlags::NO_SYMLINKS)?;
        let file = reach::readable(handle.as_fd(), &name)?;
        ObjectFile::from_file(file, name)
    }
}

/// Whether a file is one that a build-id cache holds: `…/BUILD-ID/elf`.
fn is_cached_copy(scan: &Scan) -> bool {
    let path = &scan.binary.path;
    let parent = path.parent().and_then(Path::file_name);
    path.file_name().is_some_and(|name| name == "elf")
        && scan
            .binary
            .build_id
            .is_some_and(|id| parent.is_some_and(|parent| parent == id.to_string().as_str()))
}

/// Which devices' file systems are made up by the kernel.
#[derive(Default)]
struct Devices {
    known: HashMap<u64, bool>,
}

impl Devices {
    fn is_made_up(&mut self, dir: &DirEntry) -> bool {
        let Ok(metadata) = dir.metadata() else {
            return false;
        };
        *self
            .known
            .entry(metadata.dev())
            .or_insert_with(|| is_made_up(dir.path()))
    }
}

/// Whether a directory's file system holds no files of anybody's: those of `linux/magic.h` that programs and
/// libraries are never loaded from.
fn is_made_up(dir: &Path) -> bool {
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

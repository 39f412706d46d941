//! Opens files by path, including paths through the magic links of `/proc`.
//!
//! `/proc/PID/root`, `cwd`, `exe` and the links in `fd`, `map_files` and `ns` lead to what the *process* sees, while `readlink(2)` gives a
//! path that can mean a different file here. Such a link is followed only by the kernel. In the rest of the path, symbolic links stay
//! below `/proc/PID/root`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::elf::{ElfError, FileId};

/// Maximum number of symbolic links in a path (the kernel's `MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Maximum number of lookups of a path that fail because a directory in it was renamed concurrently (openat2(2), EAGAIN).
const TRIES: usize = 64;
/// Flags of a handle, which refers to a file without opening it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// An open regular file.
#[derive(Debug)]
pub(crate) struct OpenedPath {
    /// The file.
    pub(crate) file: File,
    /// Its path for messages and traces.
    pub(crate) path: PathBuf,
}

/// Opens a regular file for reading.
///
/// # Errors
/// [`ElfError::Io`]; [`ElfError::NotElf`] if it is not a regular file.
pub(crate) fn regular_file(path: &Path) -> Result<OpenedPath, ElfError> {
    let handle = handle(path)?;
    let file = open_readable(handle.as_fd(), path)?;
    let path = name(handle.as_fd(), path)?;
    Ok(OpenedPath { file, path })
}

/// An open handle of a directory.
#[derive(Debug)]
pub(crate) struct OpenedDirectory {
    /// The handle (`O_PATH`).
    pub(crate) handle: OwnedFd,
    /// Its path for messages.
    pub(crate) path: PathBuf,
}

/// Opens a handle of a directory.
///
/// # Errors
/// The error of the system call.
pub(crate) fn directory(path: &Path) -> io::Result<OpenedDirectory> {
    let handle = handle(path)?;
    let path = name(handle.as_fd(), path)?;
    Ok(OpenedDirectory { handle, path })
}

/// The path of an existing file for messages and traces: with links resolved, except for magic links of `/proc`.
///
/// # Errors
/// The error of the system call.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    name(handle(path)?.as_fd(), path)
}

/// Opens a regular file for reading by its handle. Devices are refused, because opening one can have side effects.
pub(crate) fn open_readable(handle: BorrowedFd<'_>, path: &Path) -> Result<File, ElfError> {
    const OTHER: ElfError = ElfError::NotElf("not a regular file");
    let kind = rustix::fs::fstat(handle).map_err(io::Error::from)?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return Err(OTHER);
    }
    // O_NONBLOCK: do not wait for the lease of another process.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let open = |path: &Path| {
        let opened = openat(CWD, path, flags, Mode::empty());
        opened.map(File::from).map_err(io::Error::from)
    };
    match open(&by_number(handle)) {
        // Without /proc, open the path again.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self/fd").exists() =>
        {
            let file = open(path)?;
            let is_file = file.metadata()?.is_file();
            is_file.then_some(file).ok_or(OTHER)
        }
        outcome => Ok(outcome?),
    }
}

/// Opens a handle of a path.
pub(crate) fn handle(path: &Path) -> io::Result<OwnedFd> {
    // In one call if it has no magic link (Linux 5.6).
    let found = openat2(
        CWD,
        path,
        HANDLE,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    );
    if let Ok(found) = found {
        return Ok(found);
    }
    match magic_link(path)? {
        Some(magic) => magic.open(),
        None => Ok(openat(CWD, path, HANDLE, Mode::empty())?),
    }
}

/// The path of a handle's file: the kernel's, if that path leads to the file, else `path` made absolute.
pub(crate) fn name(handle: BorrowedFd<'_>, path: &Path) -> io::Result<PathBuf> {
    let by_number = by_number(handle);
    if let Ok(known) = fs::read_link(&by_number)
        && FileId::from_path(&known).is_some_and(|id| Some(id) == FileId::from_path(&by_number))
    {
        return Ok(known);
    }
    std::path::absolute(path)
}

fn by_number(handle: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// A magic link of `/proc`, and the rest of the path.
#[derive(Debug)]
struct MagicLink {
    link: PathBuf,
    rest: PathBuf,
}

/// Follows a path up to its first magic link; `None` if it has none.
fn magic_link(path: &Path) -> io::Result<Option<MagicLink>> {
    let absolute = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = names(&absolute).collect();
    let (mut here, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        // Not a link, or missing: opening the path reports the error.
        let Ok(target) = fs::read_link(&next) else {
            here = next;
            continue;
        };
        if is_magic(&here, &name) {
            return Ok(Some(MagicLink {
                link: next,
                rest: rest.iter().collect(),
            }));
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(name);
        }
    }
    Ok(None)
}

/// The names in a path, including `..`.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// Whether a link is a magic link of a process, wherever procfs is mounted.
fn is_magic(dir: &Path, name: &OsStr) -> bool {
    /// `PROC_SUPER_MAGIC`, statfs(2)
    const PROC: u64 = 0x9fa0;
    let of_process = ["root", "cwd", "exe"].iter().any(|link| name == *link);
    let in_list = ["fd", "map_files", "ns"];
    let listed = dir
        .file_name()
        .is_some_and(|dir| in_list.iter().any(|list| dir == *list));
    (of_process || listed) && rustix::fs::statfs(dir).is_ok_and(|found| found.f_type as u64 == PROC)
}

impl MagicLink {
    fn open(&self) -> io::Result<OwnedFd> {
        let there = openat(CWD, &self.link, HANDLE, Mode::empty())?;
        if self.rest.as_os_str().is_empty() {
            return Ok(there);
        }
        if self.link.file_name().is_some_and(|name| name == "root") {
            return below(there.as_fd(), &self.rest, ResolveFlags::IN_ROOT);
        }
        // An absolute symbolic link below the directory would lead to a file of this process's root.
        match below(there.as_fd(), &self.rest, ResolveFlags::NO_SYMLINKS) {
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                below(there.as_fd(), &self.rest, ResolveFlags::BENEATH)
            }
            outcome => outcome,
        }
    }
}

/// Opens a handle of a path below a directory.
///
/// # Errors
/// The error of `openat2(2)`. Before Linux 5.6, `ELOOP` for a path with a symbolic link.
pub(crate) fn below(dir: BorrowedFd<'_>, path: &Path, how: ResolveFlags) -> io::Result<OwnedFd> {
    let how = how | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0..TRIES;
    loop {
        match openat2(dir, path, HANDLE, Mode::empty(), how) {
            Err(Errno::AGAIN) if tries.next().is_some() => {}
            // Seccomp filters return EPERM for unknown system calls.
            Err(Errno::NOSYS | Errno::PERM) => return without_links(dir, path),
            outcome => return Ok(outcome?),
        }
    }
}

/// As [`below`], without `openat2`: opens one component after the other and refuses links.
fn without_links(dir: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut here = openat(dir, c".", HANDLE, Mode::empty())?;
    for name in names(path) {
        if name == ".." {
            return Err(Errno::XDEV.into());
        }
        here = openat(&here, name, HANDLE | OFlags::NOFOLLOW, Mode::empty())?;
        let kind = rustix::fs::fstat(&here)?.st_mode;
        if FileType::from_raw_mode(kind) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
    }
    Ok(here)
}

//! Opening the file that a path means, once.
//!
//! Some links below `/proc` are no text that could be followed by hand: `/proc/PID/root`, `cwd`, `exe`, and what is in `fd` and
//! `map_files` lead where the *process* sees something, although `readlink(2)` gives a path that means another file here.
//! Such a link is followed by the kernel alone, and of what comes after it, symbolic links stay below `/proc/PID/root`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::elf::{ElfError, FileId};

/// Most symbolic links that are followed (the kernel's `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// Times that a path is looked up anew because something in it was renamed meanwhile (openat2(2), EAGAIN).
const TRIES: usize = 64;
/// How a file is referred to without opening it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// An open regular file.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The file.
    pub(crate) file: File,
    /// What it is called.
    pub(crate) path: PathBuf,
}

/// Opens the regular file that a path means.
///
/// # Errors
/// [`ElfError::Io`]; [`ElfError::NotElf`] for what is no regular file.
pub(crate) fn file(path: &Path) -> Result<Reached, ElfError> {
    let handle = handle(path)?;
    let file = readable(handle.as_fd(), path)?;
    let path = name(handle.as_fd(), path)?;
    Ok(Reached { file, path })
}

/// Refers to the directory that a path means. The second is what it is called.
///
/// # Errors
/// That of the system call.
pub(crate) fn directory(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let found = handle(path)?;
    let name = name(found.as_fd(), path)?;
    Ok((found, name))
}

/// The path by which messages and traces name what an existing path means: with links resolved, or below the link of
/// `/proc` that it leads through.
///
/// # Errors
/// That of the system call.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    name(handle(path)?.as_fd(), path)
}

/// The identity of what a path means; `None` if it means nothing.
pub(crate) fn id(path: &Path) -> Option<FileId> {
    let found = rustix::fs::fstat(handle(path).ok()?).ok()?;
    Some(FileId {
        device: found.st_dev,
        inode: found.st_ino,
    })
}

/// Opens a regular file for reading by a handle on it. Devices are not opened, which may do things.
pub(crate) fn readable(handle: BorrowedFd<'_>, path: &Path) -> Result<File, ElfError> {
    const OTHER: ElfError = ElfError::NotElf("not a regular file");
    let kind = rustix::fs::fstat(handle).map_err(io::Error::from)?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return Err(OTHER);
    }
    // A lease of another process must not hold us up.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let open = |path: &Path| {
        let opened = openat(CWD, path, flags, Mode::empty());
        opened.map(File::from).map_err(io::Error::from)
    };
    match open(&by_number(handle)) {
        // Without /proc, the path is all that there is.
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

/// A handle on what a path means.
fn handle(path: &Path) -> io::Result<OwnedFd> {
    match magic_link(path)? {
        Some(magic) => magic.open(),
        None => Ok(openat(CWD, path, HANDLE, Mode::empty())?),
    }
}

/// What a handle's file is called: the path that the kernel has for it, if that leads there, else as it was asked for.
fn name(handle: BorrowedFd<'_>, asked: &Path) -> io::Result<PathBuf> {
    let by_number = by_number(handle);
    if let Ok(known) = fs::read_link(&by_number)
        && FileId::of(&known).is_some_and(|id| Some(id) == FileId::of(&by_number))
    {
        return Ok(known);
    }
    std::path::absolute(asked)
}

fn by_number(handle: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// A link of `/proc` that only the kernel can follow, and the rest of the path.
#[derive(Debug)]
struct MagicLink {
    link: PathBuf,
    rest: PathBuf,
}

/// Follows a path up to its first such link; `None` if it leads through none.
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
        // What is not there, opening it will say.
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
        if links > MOST_LINKS {
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

/// The names in a path, `..` among them.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// Whether a link is one of those of a process below `/proc`, wherever that is mounted.
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
        // A symbolic link below the directory that begins with `/` would mean a file of ours.
        match below(there.as_fd(), &self.rest, ResolveFlags::NO_SYMLINKS) {
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                below(there.as_fd(), &self.rest, ResolveFlags::BENEATH)
            }
            outcome => outcome,
        }
    }
}

/// A handle on what a path means below a directory.
///
/// # Errors
/// That of `openat2(2)`. Before Linux 5.6, `ELOOP` for a path with a symbolic link.
pub(crate) fn below(dir: BorrowedFd<'_>, path: &Path, how: ResolveFlags) -> io::Result<OwnedFd> {
    let how = how | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0..TRIES;
    loop {
        match openat2(dir, path, HANDLE, Mode::empty(), how) {
            Err(Errno::AGAIN) if tries.next().is_some() => {}
            // Filters of system calls answer EPERM for those that they do not know.
            Err(Errno::NOSYS | Errno::PERM) => return without_links(dir, path),
            outcome => return Ok(outcome?),
        }
    }
}

/// As [`below`], name by name, where no name is a link.
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

//! Handles of files that others control, opened without a wait for their file systems.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::contents::{Contents, ServedFile};
use super::file_stat::FileStat;
use super::helper;
use super::helpers::{Reader, are_used, ask};
use super::local_mounts;
use super::message::Task;
use crate::elf::{ElfError, FileId};
use crate::file_mapping::{DeviceNumber, FileMapping};
use crate::open_path;

/// Paths that are those of the process that opens them.
const OWN: [&str; 3] = ["/proc/self", "/proc/thread-self", "/dev/fd"];

/// A handle of a file (`O_PATH`), and what is known of the file.
#[derive(Debug)]
pub struct Handle {
    descriptor: OwnedFd,
    stat: FileStat,
    /// Path for messages and traces.
    name: PathBuf,
    is_local: bool,
    reader: Reader,
}

impl Handle {
    /// Opens the file to which a link in `/proc/PID/map_files` leads.
    ///
    /// # Errors
    /// The error of `openat(2)` or `fstat(2)`; `TimedOut` if the file system does not answer.
    pub(crate) fn of_mapping(link: &Path, reader: Reader) -> io::Result<Self> {
        if !are_used() {
            return Self::here(link, true, reader);
        }
        // NFS may check the file to which such a link leads, and it is found under the lock of the process's mappings.
        Self::by_helper(Task::Open, link, None, reader)
    }

    /// Opens the file of a mapping by its path, if the kernel knows without its file system that this leads to a local file with the mapping's
    /// device and inode number. Unlike the link in `/proc/PID/map_files` that needs no lock of the process.
    pub(crate) fn of_local(mapping: &FileMapping, reader: Reader) -> Option<Self> {
        if mapping.deleted || !are_used() || !local_mounts::has_device(mapping.device) {
            return None;
        }
        let descriptor = local(&mapping.path)?;
        let stat = FileStat::of(descriptor.as_fd()).ok()?;
        let DeviceNumber { major, minor } = mapping.device;
        let id = FileId {
            device: rustix::fs::makedev(major, minor),
            inode: mapping.inode,
        };
        (stat.id == id).then(|| Self {
            descriptor,
            stat,
            name: mapping.path.clone(),
            is_local: true,
            reader,
        })
    }

    /// Opens what a path leads to. A path through `/proc/PID/root` and the like is resolved as that process sees it.
    ///
    /// # Errors
    /// As `of_mapping`.
    pub fn of_path(path: &Path, reader: Reader) -> io::Result<Self> {
        Self::of_any_path(path, true, reader)
    }

    /// Opens what is at a path; the last part of it is not followed if it is a symbolic link.
    ///
    /// # Errors
    /// As `of_mapping`.
    pub(crate) fn of_path_itself(path: &Path, reader: Reader) -> io::Result<Self> {
        Self::of_any_path(path, false, reader)
    }

    fn of_any_path(path: &Path, follow: bool, reader: Reader) -> io::Result<Self> {
        // Such a link leads to the file itself: no path is looked up.
        let is_mapping = path
            .parent()
            .is_some_and(|links| links.ends_with("map_files"));
        if follow && is_mapping && path.starts_with("/proc") {
            return Self::of_mapping(path, reader);
        }
        // A helper has other descriptors than this process.
        let is_own = OWN.iter().any(|own| path.starts_with(own));
        if is_own || !are_used() {
            return Self::here(path, follow, reader);
        }
        let no_follow = match follow {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        // What the kernel knows of the path (Linux 5.12): it asks no file system.
        let known = openat2(
            CWD,
            path,
            OFlags::PATH | OFlags::CLOEXEC | no_follow,
            Mode::empty(),
            ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS,
        );
        let task = if follow { Task::Open } else { Task::OpenNoLink };
        match known {
            Ok(descriptor) if local_mounts::has(descriptor.as_fd()) => {
                let name = name(descriptor.as_fd());
                let name = name.map_or_else(|| std::path::absolute(path), Ok)?;
                Self::of_descriptor(descriptor, name, reader)
            }
            Err(error @ rustix::io::Errno::NOENT) => Err(error.into()),
            Ok(_) | Err(_) => {
                let path = std::path::absolute(path)?;
                Self::by_helper(task, &path, None, reader)
            }
        }
    }

    /// Opens what is below this directory at a path without symbolic links.
    ///
    /// # Errors
    /// As `of_mapping`.
    pub fn below(&self, path: &Path) -> io::Result<Self> {
        let (directory, reader) = (self.descriptor.as_fd(), self.reader);
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        if are_used() && !self.is_local {
            return Self::by_helper(Task::OpenBelow, path, Some(directory), reader);
        }
        let descriptor = open_path::below(directory, path, how)?;
        match are_used() {
            true => Self::described(descriptor, path, reader),
            false => Self::of_descriptor(descriptor, path.to_owned(), reader),
        }
    }

    /// Without helpers.
    fn here(path: &Path, follow: bool, reader: Reader) -> io::Result<Self> {
        let descriptor = helper::handle(path, follow)?;
        let name = open_path::name(descriptor.as_fd(), path)?;
        Self::of_descriptor(descriptor, name, reader)
    }

    /// A file that needs no helper.
    fn of_descriptor(descriptor: OwnedFd, name: PathBuf, reader: Reader) -> io::Result<Self> {
        Ok(Self {
            stat: FileStat::of(descriptor.as_fd())?,
            descriptor,
            name,
            is_local: true,
            reader,
        })
    }

    fn described(descriptor: OwnedFd, path: &Path, reader: Reader) -> io::Result<Self> {
        let is_local = local_mounts::has(descriptor.as_fd());
        let stat = match is_local {
            true => FileStat::of(descriptor.as_fd())?,
            false => {
                let answer = ask(&reader, &[Task::Describe.byte()], &[descriptor.as_fd()])?;
                FileStat::parse(&answer.bytes).ok_or(io::ErrorKind::InvalidData)?
            }
        };
        Ok(Self {
            descriptor,
            stat,
            name: std::path::absolute(path)?,
            is_local,
            reader,
        })
    }

    fn by_helper(
        task: Task,
        path: &Path,
        directory: Option<BorrowedFd<'_>>,
        reader: Reader,
    ) -> io::Result<Self> {
        let request = [&[task.byte()], path.as_os_str().as_bytes()].concat();
        let mut answer = ask(&reader, &request, directory.as_slice())?;
        let stat = FileStat::parse(&answer.bytes);
        let (Some(stat), Some(descriptor)) = (stat, answer.descriptors.pop()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let name = answer.bytes.split_off(FileStat::SIZE);
        Ok(Self {
            is_local: local_mounts::has(descriptor.as_fd()),
            descriptor,
            stat,
            name: OsString::from_vec(name).into(),
            reader,
        })
    }

    /// What the file system said when it was opened.
    #[must_use]
    pub const fn stat(&self) -> &FileStat {
        &self.stat
    }

    /// The path for messages and traces: with links resolved if that path leads to the file.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// The handle, which cannot be read.
    #[must_use]
    pub fn into_descriptor(self) -> OwnedFd {
        self.descriptor
    }

    /// Opens a regular file for reading. Devices are refused, because opening one can have side effects.
    ///
    /// # Errors
    /// [`ElfError::NotElf`] if it is not a regular file; the error of `openat(2)`.
    pub fn open(self) -> Result<Contents, ElfError> {
        if !self.stat.is_file() {
            return Err(ElfError::NotElf("not a regular file"));
        }
        if !self.is_local {
            let file = ServedFile::new(self.descriptor, self.reader);
            return Ok(Contents::Served(file));
        }
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        // O_NONBLOCK: do not wait for the lease of another process.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let opened = openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from)?;
        Ok(Contents::Local(File::from(opened)))
    }
}

/// Device and inode of the file at a path that others control; `None` if it does not exist or its file system does not answer. Unlike
/// [`FileId::from_path`], symbolic links below `/proc/PID/root` stay below it, as the process follows them.
#[must_use]
pub fn file_id(path: &Path, reader: Reader) -> Option<FileId> {
    Some(Handle::of_path(path, reader).ok()?.stat().id)
}

/// The path of a local file as the kernel has it, if that leads to the file.
fn name(file: BorrowedFd<'_>) -> Option<PathBuf> {
    let known = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let found = local(&known)?;
    let id = |file| Some(FileStat::of(file).ok()?.id);
    (id(found.as_fd()) == id(file)).then_some(known)
}

/// Opens a handle of a local file at a path that the kernel knows without its file system, and that is no symbolic link.
fn local(path: &Path) -> Option<OwnedFd> {
    let found = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS,
    );
    found.ok().filter(|found| local_mounts::has(found.as_fd()))
}

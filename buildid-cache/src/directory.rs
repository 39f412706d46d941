//! Directories of the cache, opened without following symbolic links.
//!
//! Other users may have created directories and links in the cache. Each directory is opened relative to its parent with `O_NOFOLLOW`, so
//! that nothing outside the cache is written or removed. Operations in an open directory use `/proc/self/fd/N`, which is that directory
//! even if its path is exchanged.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

impl Directory {
    /// Opens the cache's own directory. Links are followed, because the user chose the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FLAGS, Mode::empty())?))
    }

    /// Opens a directory below this one. `path` is relative to this directory.
    ///
    /// # Errors
    /// `InvalidInput` if the path has `..` or a root, `ENOTDIR` or `ELOOP` if a component is a link.
    pub(crate) fn open_below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, false)
    }

    /// As [`open_below`](Self::open_below), creating directories that do not exist.
    pub(crate) fn create_below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, true)
    }

    fn walk(&self, path: &Path, create: bool) -> io::Result<Self> {
        let mut at = self.0.try_clone()?;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            if create {
                match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            at = openat(&at, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// A path of this directory that is valid while it is open.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// The path of an entry of this directory, valid while it is open.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// The entries of this directory.
    pub(crate) fn entries(&self) -> io::Result<Vec<fs::DirEntry>> {
        fs::read_dir(self.path())?.collect()
    }

    /// Its metadata.
    pub(crate) fn metadata(&self) -> io::Result<fs::Metadata> {
        File::from(self.0.try_clone()?).metadata()
    }

    /// Opens a file in this directory for reading and writing, creating it with `mode` if it does not exist. Links are not followed.
    pub(crate) fn open_file(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode);
        Ok(File::from(openat(&self.0, name, flags, mode)?))
    }

    /// Opens a file in this directory for reading. Links are not followed.
    pub(crate) fn read_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }
}

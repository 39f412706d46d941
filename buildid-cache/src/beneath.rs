//! Directories of the cache that are opened without following a link.
//!
//! Names below the cache are paths of programs and what links of the cache say, and others may have made directories and links there. Each
//! directory is opened from the one above it with `O_NOFOLLOW`, so that nothing outside the cache is written or removed. What happens in
//! an open directory goes by `/proc/self/fd/N`, which is that directory whatever its path leads to by then.

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
    /// Opens a directory, also if a link leads to it: that of the cache is the user's choice.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FLAGS, Mode::empty())?))
    }

    /// Opens a directory below this one.
    ///
    /// # Errors
    /// `InvalidInput` if the path is not plain names, `ENOTDIR` or `ELOOP` if one of them is a link.
    pub(crate) fn below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, false)
    }

    /// As [`below`](Self::below); what does not exist is made.
    pub(crate) fn make_below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, true)
    }

    fn walk(&self, path: &Path, make: bool) -> io::Result<Self> {
        let mut at = self.0.try_clone()?;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            if make {
                match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            at = openat(&at, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// A path of this directory as long as it is open.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// A path of what has this name in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// What it holds.
    pub(crate) fn names(&self) -> io::Result<Vec<fs::DirEntry>> {
        fs::read_dir(self.path())?.collect()
    }

    /// Its metadata.
    pub(crate) fn metadata(&self) -> io::Result<fs::Metadata> {
        File::from(self.0.try_clone()?).metadata()
    }

    /// Opens a file in it, making it with this mode if it does not exist; no link is followed.
    pub(crate) fn open_file(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode);
        Ok(File::from(openat(&self.0, name, flags, mode)?))
    }

    /// Opens a file in it for reading; no link is followed.
    pub(crate) fn read_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }
}

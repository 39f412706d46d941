//! A file that is written for a long time, and what others do to it meanwhile.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use usdtrec_format::escape::shown;

use super::foreign_writes::{self, Check, ForeignOpens};

/// What another process did to a file while it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It was made shorter.
    Truncated {
        /// The file.
        path: PathBuf,
        /// The size that was found, bytes.
        left: u64,
        /// The size that had been written, bytes.
        written: u64,
    },
    /// Other bytes are in it than were written.
    Overwritten {
        /// The file.
        path: PathBuf,
    },
    /// Another process had it open for writing, and only a part of it could be compared with what was written.
    Unchecked {
        /// The file.
        path: PathBuf,
        /// So much is as it was written, bytes.
        checked: u64,
        /// The size that had been written, bytes.
        written: u64,
    },
    /// It has no name any more.
    Deleted {
        /// The name that it had.
        path: PathBuf,
    },
    /// It has another name.
    Renamed {
        /// The name that it had.
        path: PathBuf,
        /// The name that it has, if that is known.
        to: Option<PathBuf>,
    },
}

impl FileChange {
    /// Whether what was written is gone, or nobody knows where it is.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::Renamed { to: Some(_), .. } | Self::Unchecked { .. }
        )
    }

    /// The name that the file had.
    pub(crate) fn path(&self) -> &Path {
        let (Self::Truncated { path, .. }
        | Self::Overwritten { path }
        | Self::Unchecked { path, .. }
        | Self::Deleted { path }
        | Self::Renamed { path, .. }) = self;
        path
    }

    /// Where a file is after changes of several files.
    #[must_use]
    pub fn place(changes: &[Self], path: &Path) -> PathBuf {
        let absolute = std::path::absolute(path).ok();
        let place = changes.iter().find_map(|change| match change {
            Self::Renamed {
                path: from,
                to: Some(to),
            } if Some(from) == absolute.as_ref() => Some(to.clone()),
            _ => None,
        });
        place.unwrap_or_else(|| path.to_owned())
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHEN: &str = "while it was written";
        match self {
            Self::Truncated {
                path,
                left,
                written,
            } => write!(
                f,
                "{} was truncated to {left} of {written} bytes {WHEN}: events that were recorded before are not in it",
                shown(path)
            ),
            Self::Overwritten { path } => write!(
                f,
                "{} was overwritten {WHEN}: events that were recorded before may not be in it",
                shown(path)
            ),
            Self::Unchecked {
                path,
                checked,
                written,
            } => write!(
                f,
                "another process had {} open for writing {WHEN}: {checked} of {written} bytes were compared, and are as they were written",
                shown(path)
            ),
            Self::Deleted { path } => write!(
                f,
                "{} was deleted or replaced {WHEN}: the recording is lost",
                shown(path)
            ),
            Self::Renamed { path, to: Some(to) } => write!(
                f,
                "{} was renamed {WHEN}: the recording is in {}",
                shown(path),
                shown(to)
            ),
            Self::Renamed { path, to: None } => write!(
                f,
                "{} was replaced {WHEN}: the recording has another name, which is not known",
                shown(path)
            ),
        }
    }
}

/// A handle of a regular file that is being written, and the name that it had at first.
#[derive(Debug)]
pub struct WatchedFile {
    handle: File,
    /// The absolute path, where the file is seen at its path.
    path: Option<PathBuf>,
    /// `None` if it cannot be watched.
    opens: Option<ForeignOpens>,
}

impl WatchedFile {
    /// Watches a file; `None` of a device, or if it cannot be duplicated.
    #[must_use]
    pub fn new(file: &File) -> Option<Self> {
        let handle = file.try_clone().ok()?;
        let found = handle.metadata().ok().filter(Metadata::is_file)?;
        let path = path_of(&handle).filter(|path| is_at(path, &found));
        Some(Self {
            opens: ForeignOpens::watch(&handle),
            handle,
            path,
        })
    }

    /// Whether what was written is gone: the size is less than `written`, the first bytes are not `first`, or the file has no name.
    ///
    /// # Errors
    /// The error of `fstat(2)` or `pread(2)`.
    pub fn look(&mut self, written: u64, first: &[u8]) -> io::Result<Option<FileChange>> {
        if let Some(opens) = &mut self.opens {
            opens.take();
        }
        let found = self.handle.metadata()?;
        if found.len() < written {
            return Ok(Some(FileChange::Truncated {
                path: self.name(),
                left: found.len(),
                written,
            }));
        }
        let mut start = vec![0; first.len()];
        self.handle.read_exact_at(&mut start, 0)?;
        if start != first {
            return Ok(Some(FileChange::Overwritten { path: self.name() }));
        }
        let is_deleted = found.nlink() == 0;
        Ok(is_deleted.then(|| FileChange::Deleted { path: self.name() }))
    }

    /// As [`look`](Self::look) of a trace that is complete, which has no hole: one that was truncated during a write has as many bytes as were
    /// written. If another process may have written to it, it is read again.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn look_at_all(&mut self, written: u64, first: &[u8]) -> io::Result<Option<FileChange>> {
        // Where the file system knows no holes, the end is found.
        match rustix::fs::seek(&self.handle, SeekFrom::Hole(0)) {
            Ok(left) if left < written => Ok(Some(FileChange::Truncated {
                path: self.name(),
                left,
                written,
            })),
            _ => match self.look(written, first)? {
                None => self.compare(written),
                found => Ok(found),
            },
        }
    }

    /// Whether another process has changed what was written.
    fn compare(&mut self, written: u64) -> io::Result<Option<FileChange>> {
        let Some(opens) = &mut self.opens else {
            return Ok(None);
        };
        if !opens.may_have_written() {
            return Ok(None);
        }
        let was_writable = opens.was_writable();
        Ok(match foreign_writes::check(&self.handle)? {
            Check::Same => None,
            Check::Changed => Some(FileChange::Overwritten { path: self.name() }),
            // Most that open it only read it.
            Check::Partly(_) if !was_writable => None,
            Check::Partly(checked) => Some(FileChange::Unchecked {
                path: self.name(),
                checked,
                written,
            }),
        })
    }

    /// Whether it has lost its name, or has another one.
    #[must_use]
    pub fn fate(&self) -> Option<FileChange> {
        let found = self.handle.metadata().ok()?;
        if found.nlink() == 0 {
            return Some(FileChange::Deleted { path: self.name() });
        }
        let path = self.path.as_deref()?;
        if is_at(path, &found) {
            return None;
        }
        Some(FileChange::Renamed {
            path: path.to_owned(),
            to: path_of(&self.handle).filter(|path| is_at(path, &found)),
        })
    }

    /// The handle.
    #[must_use]
    pub fn into_handle(self) -> File {
        self.handle
    }

    fn name(&self) -> PathBuf {
        let name = self.path.clone().or_else(|| path_of(&self.handle));
        name.unwrap_or_else(|| PathBuf::from("the output"))
    }
}

/// The path of an open file, without the kernel's mark of one that was deleted.
fn path_of(file: &File) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let path = link.as_os_str().as_bytes();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Whether this is the file at the path.
fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_others_do_to_a_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (path, other) = (folder.join("trace"), folder.join("other"));
        let make = || {
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            let mut file = options.open(&path).unwrap();
            file.write_all(b"head and data").unwrap();
            WatchedFile::new(&file).unwrap()
        };
        let look = |watched: &mut WatchedFile| watched.look(13, b"head").unwrap();
        let mut watched = make();
        assert_eq!((look(&mut watched), watched.fate()), (None, None));
        // Another name besides is no change.
        fs::hard_link(&path, &other).unwrap();
        assert_eq!(watched.fate(), None);
        fs::write(&path, "tail").unwrap();
        let truncated = FileChange::Truncated {
            path: path.clone(),
            left: 4,
            written: 13,
        };
        assert_eq!(look(&mut watched), Some(truncated));
        watched.handle.write_all_at(b"d data", 16384).unwrap();
        let whole = watched.look_at_all(16390, b"tail").unwrap();
        assert!(
            matches!(whole, Some(FileChange::Truncated { left, .. }) if left < 16384),
            "{whole:?}"
        );
        fs::write(&path, "tail and more of it").unwrap();
        let overwritten = FileChange::Overwritten { path: path.clone() };
        assert_eq!(look(&mut watched), Some(overwritten));
        fs::remove_file(&path).unwrap();
        let unknown = watched.fate().unwrap();
        assert!(unknown.is_failure(), "{unknown}");
        fs::remove_file(&other).unwrap();
        let deleted = FileChange::Deleted { path: path.clone() };
        assert_eq!(watched.fate(), Some(deleted));
        let mut watched = make();
        fs::rename(&path, &other).unwrap();
        fs::write(&path, "of another program").unwrap();
        assert_eq!(look(&mut watched), None);
        let renamed = watched.fate().unwrap();
        assert!(!renamed.is_failure(), "{renamed}");
        let changes = [renamed];
        assert_eq!(FileChange::place(&changes, &path), other);
        assert_eq!(FileChange::place(&changes, &other), other);
        assert!(WatchedFile::new(&File::open("/dev/null").unwrap()).is_none());
    }
}

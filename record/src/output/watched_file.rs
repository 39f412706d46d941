//! A file that is written for a long time, and what others do to it meanwhile.
//!
//! Who opens it is watched (inotify(7)), which costs nothing at a write, and only if another process has, what was written is read again. The descriptors
//! of this process stay open, so that events are of others.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::SeekFrom;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use usdtrec_attach::FileChange;
use usdtrec_format::trace::{BlockKind, BlockReader, Damage, Trace};

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
        Ok(match check(&self.handle)? {
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

/// How long the end of a file may be held up by reading it again.
const MAX_CHECK_TIME: Duration = Duration::from_millis(300);

/// The opens of a file by other processes.
#[derive(Debug)]
pub(super) struct ForeignOpens {
    inotify: OwnedFd,
    /// Number of those that may still write.
    open: i64,
    /// Whether one that could write was closed.
    was_writable: bool,
    /// Whether some are not known.
    is_incomplete: bool,
}

/// What was found when a file was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It is as it was written.
    Same,
    /// Something else is in it.
    Changed,
    /// So many bytes are as they were written; of others that is not known.
    Partly(u64),
}

impl ForeignOpens {
    /// Watches a file; `None` if it cannot be watched, as on a kernel without inotify.
    pub(super) fn watch(file: &File) -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&inotify, path, flags).ok()?;
        Some(Self {
            inotify,
            open: 0,
            was_writable: false,
            is_incomplete: false,
        })
    }

    /// Takes what has happened, so that the kernel need not keep it.
    pub(super) fn take(&mut self) {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut bytes);
        while let Ok(event) = events.next() {
            let event = event.events();
            self.open += i64::from(event.contains(ReadFlags::OPEN));
            self.open -= i64::from(event.contains(ReadFlags::CLOSE_NOWRITE));
            self.open -= i64::from(event.contains(ReadFlags::CLOSE_WRITE));
            self.was_writable |= event.contains(ReadFlags::CLOSE_WRITE);
            self.is_incomplete |= event.contains(ReadFlags::QUEUE_OVERFLOW);
        }
    }

    /// Whether another process may have written to the file.
    pub(super) fn may_have_written(&mut self) -> bool {
        self.take();
        self.was_writable || self.is_incomplete || self.open != 0
    }

    /// Whether one that could write to it has closed it.
    pub(super) const fn was_writable(&self) -> bool {
        self.was_writable
    }
}

/// Reads a complete trace again, for [`MAX_CHECK_TIME`] at most.
///
/// # Errors
/// The error of duplicating the descriptor.
pub(super) fn check(file: &File) -> io::Result<Check> {
    let begun = Instant::now();
    let Ok(trace) = Trace::from_file(file.try_clone()?) else {
        return Ok(Check::Changed);
    };
    if trace.damage().iter().any(Damage::loses_records) || trace.uncommitted().is_some() {
        return Ok(Check::Changed);
    }
    if has_unused_bytes(file)? {
        return Ok(Check::Changed);
    }
    let mut reader = BlockReader::new();
    let mut checked = 0;
    let mut is_whole = true;
    for block in trace.blocks() {
        if begun.elapsed() >= MAX_CHECK_TIME {
            return Ok(Check::Partly(checked));
        }
        if reader.check(&trace, block).is_err() {
            return Ok(Check::Changed);
        }
        // Records that are not compressed have no checksum. Of the few that are no samples, the lengths fit.
        match block.kind {
            BlockKind::Chunk => checked += block.len,
            BlockKind::Plain if block.metadata => {}
            BlockKind::Plain | BlockKind::Stream => is_whole = false,
        }
    }
    Ok(if is_whole {
        Check::Same
    } else {
        Check::Partly(checked)
    })
}

/// Whether there is anything in the part of the head that is reserved: zeros, after a page of them, up to the data.
fn has_unused_bytes(file: &File) -> io::Result<bool> {
    /// Where the file's header has the offset of the data.
    const DATA_AT: u64 = 40;
    /// Maximum length of a head that is looked at.
    const MAX_HEAD: u64 = 1 << 20;
    const PAGE: usize = 4096;
    let mut offset = [0; 8];
    file.read_exact_at(&mut offset, DATA_AT)?;
    let mut head = vec![0; u64::from_le_bytes(offset).min(MAX_HEAD) as usize];
    file.read_exact_at(&mut head, 0)?;
    let mut zeros = 0;
    for byte in head {
        match byte {
            0 => zeros += 1,
            _ if zeros >= PAGE => return Ok(true),
            _ => zeros = 0,
        }
    }
    Ok(false)
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

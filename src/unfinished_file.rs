//! A file, usually of mode 0600, of the user who called sudo, that gets its name when it is complete. Until then another file of this name stays.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::NamedTempFile;

#[cfg(feature = "record")]
use crate::old_file::keep_old;
use crate::stream;
use crate::sudo_user;

/// What names begin with of what is not complete.
pub(crate) const UNFINISHED: &str = ".usdtrec-export-";
/// The mode of files that nobody else can read.
const PRIVATE: u32 = 0o600;
/// Names that are tried for a file that replaces another one.
const NAMES: u32 = 1000;

/// A file that is being written.
#[derive(Debug)]
pub(crate) enum UnfinishedFile {
    /// Has no name: nothing is left of it if the process is killed.
    Unnamed(File),
    /// Has another name, where the file system cannot have files without one.
    Named(NamedTempFile),
    /// A character device, a FIFO, or what this process has open, which is written front to back.
    Stream(File),
}

impl UnfinishedFile {
    /// Creates one in the folder of the file that it becomes, which nobody else can read. A character device or FIFO is opened instead.
    ///
    /// # Errors
    /// The path is a folder, or a FIFO of another user; the error of the system call. They do not name the path.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Self::create_with(path, PRIVATE)
    }

    /// As [`create`](Self::create), for a trace.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create); the path names an open file of this process.
    #[cfg(feature = "record")]
    pub(crate) fn create_trace(path: &Path) -> io::Result<Self> {
        let created = Self::create(path)?;
        if let Self::Stream(stream) = &created {
            stream::refuse_open_file(stream)?;
        }
        Ok(created)
    }

    /// As [`create`](Self::create), for a file that others can read, too, as far as the umask allows.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create).
    pub(crate) fn create_readable(path: &Path) -> io::Result<Self> {
        Self::create_with(path, 0o644)
    }

    fn create_with(path: &Path, mode: u32) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if let Some(stream) = stream::open(path)? {
            return Ok(Self::Stream(stream));
        }
        let folder = folder_of(path);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = open(folder, flags, Mode::from_raw_mode(mode)) {
            let file = File::from(file);
            if fs::symlink_metadata(link_of(&file)).is_ok() {
                sudo_user::give(&file, folder)?;
                return Ok(Self::Unnamed(file));
            }
        }
        // Errors are those of this attempt: kernels report that they have no such files in several ways.
        let named = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(folder)
            .map_err(without_name)?;
        sudo_user::give(named.as_file(), folder)?;
        Ok(Self::Named(named))
    }

    /// Whether it is a device or FIFO, in which nothing can be written twice.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// What is written to.
    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) | Self::Stream(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives it its name. A file of this name is replaced.
    pub(crate) fn finish(self, path: &Path) -> io::Result<()> {
        let file = match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => {
                file.persist(path)?;
                return Ok(());
            }
            Self::Stream(_) => return Ok(()),
        };
        match link(&file, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => replace(&file, path),
            done => done,
        }
    }

    /// Gives it its name. A file of this name is renamed to `PATH.old`.
    #[cfg(feature = "record")]
    pub(crate) fn finish_and_keep_old(self, path: &Path) -> io::Result<()> {
        if !self.is_stream() && fs::symlink_metadata(path).is_ok() {
            keep_old(path)?;
        }
        self.finish(path)
    }
}

/// The error of `tempfile`'s functions without the temporary name, which means nothing to the user.
pub(crate) fn without_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((message, _)) => io::Error::new(error.kind(), message),
        None => error,
    }
}

/// The folder that a path is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// Replaces a file. A link cannot, so that the new one has a name of its own for a moment.
fn replace(file: &File, path: &Path) -> io::Result<()> {
    for number in 0..NAMES {
        let name = format!("{UNFINISHED}{}-{number}", std::process::id());
        let named = folder_of(path).join(name);
        match link(file, &named) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            linked => linked?,
        }
        return fs::rename(&named, path).inspect_err(|_| {
            let _ = fs::remove_file(&named);
        });
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    linkat(CWD, link_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// The link to an open file, which needs no privileges.
fn link_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn only_a_complete_file_has_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let dropped = UnfinishedFile::create(&path).expect("a file");
        let has_none = matches!(dropped, UnfinishedFile::Unnamed(_));
        assert_eq!(names(folder.path()), usize::from(!has_none));
        drop(dropped);
        assert_eq!(names(folder.path()), 0);
        for content in ["first", "second"] {
            let mut file = UnfinishedFile::create(&path).expect("a file");
            file.file().write_all(content.as_bytes()).expect("room");
            file.finish(&path).expect("a name");
            assert_eq!(fs::read_to_string(&path).expect("the file"), content);
            assert_eq!(names(folder.path()), 1);
        }
        let named = NamedTempFile::new_in(folder.path()).expect("a file");
        UnfinishedFile::Named(named).finish(&path).expect("a name");
        assert_eq!(
            (names(folder.path()), fs::read(&path).expect("it")),
            (1, Vec::new())
        );
        let nowhere = folder.path().join("missing/out");
        assert!(UnfinishedFile::create(&nowhere).is_err());
    }
}

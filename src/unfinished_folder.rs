//! A folder that gets its name when it is complete.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;

use crate::unfinished_file::{UNFINISHED, folder_of, without_name};

/// Attempts to make a folder that nobody removes before it is locked.
const TRIES: u32 = 100;

/// A folder that is being written. It is removed when dropped; if the process is killed, the next one in the same folder removes it.
#[derive(Debug)]
pub(crate) struct UnfinishedFolder {
    folder: TempDir,
    /// Locked while the process lives, which tells others that the folder is in use.
    _lock: File,
}

impl UnfinishedFolder {
    /// Creates one next to the folder that it becomes.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let parent = folder_of(path);
        remove_left(parent);
        for _ in 0..TRIES {
            let folder = TempDir::with_prefix_in(UNFINISHED, parent).map_err(without_name)?;
            let lock = opened(folder.path())?;
            // Some file systems have no locks: there nothing is removed either.
            let _ = lock.lock();
            // Another process may have removed it before it was locked.
            if lock.metadata()?.nlink() > 0 && folder.path().exists() {
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Its path until it is complete.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives it its name with a function that gets its path.
    pub(crate) fn finish(self, rename: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        rename(self.folder.path())?;
        // It is not there any more.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// Removes folders of processes of this user that were killed. What cannot be removed stays.
fn remove_left(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(UNFINISHED.as_bytes())
        {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = opened(&path) else {
            continue;
        };
        let is_ours = folder.metadata().is_ok_and(|found| found.uid() == user);
        if is_ours && is_unlocked(&folder) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Locks the folder, unless a process holds it.
fn is_unlocked(folder: &File) -> bool {
    match folder.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Opens a folder, and no link to one.
fn opened(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_nobody_writes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{UNFINISHED}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("part"), "of a dataset").unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        let link = parent.path().join(format!("{UNFINISHED}link"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let path = parent.path().join("out");
        let first = UnfinishedFolder::create(&path).unwrap();
        assert!(!left.exists(), "nobody has it locked");
        assert!(link.exists() && other.exists(), "not a folder of an export");
        let second = UnfinishedFolder::create(&path).unwrap();
        assert!(first.path().exists(), "it is being written");
        second.finish(|folder| fs::rename(folder, &path)).unwrap();
        assert!(path.exists());
        let unfinished = first.path().to_owned();
        drop(first);
        assert!(!unfinished.exists());
    }
}

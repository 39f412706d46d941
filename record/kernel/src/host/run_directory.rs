//! The directory in which recorders note what must be undone if they are killed. It is accessible to root only.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Its path.
pub const PATH: &str = "/run/usdtrec";
/// The file that is locked while leftovers are removed.
const REPAIR: &str = "repair.lock";
/// Interval at which a lock is tried again.
const STEP: Duration = Duration::from_micros(100);

/// Creates the directory if it does not exist.
///
/// # Errors
/// The errors of [`create_private`].
pub fn create() -> io::Result<PathBuf> {
    create_private(PATH.as_ref())?;
    Ok(PathBuf::from(PATH))
}

/// Locks the directory until the file is closed, for the moment of one change of a semaphore that other recorders change, too.
///
/// # Errors
/// The errors of [`check`], `open(2)` and [`lock_within`].
pub fn lock(wait: Duration) -> io::Result<File> {
    check()?;
    let directory = File::open(PATH)?;
    lock_within(&directory, wait)?;
    Ok(directory)
}

/// The lock of who removes what recordings left. Recordings do not need it: a search of all processes may hold it for long.
#[derive(Debug)]
pub struct RepairLock {
    path: PathBuf,
    _file: File,
}

impl RepairLock {
    /// Takes the lock, or waits for it so long.
    ///
    /// # Errors
    /// The errors of [`check`], `open(2)` and [`lock_within`].
    pub fn take(wait: Duration) -> io::Result<Self> {
        check()?;
        let path = Path::new(PATH).join(REPAIR);
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(libc::O_NOFOLLOW).open(&path)?;
            lock_within(&file, wait)?;
            // Who had it before has removed it.
            if file.metadata()?.nlink() > 0 {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for RepairLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks a file, or waits for the lock so long: its holder may be stopped.
///
/// # Errors
/// `WouldBlock` if it is still locked; the error of `flock(2)`.
pub fn lock_within(file: &File, wait: Duration) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < wait => thread::sleep(STEP),
            locked => return Ok(locked?),
        }
    }
}

/// Refuses the directory if others than root could have created files there.
///
/// # Errors
/// The errors of [`check_private`].
pub fn check() -> io::Result<()> {
    check_private(PATH.as_ref(), 0)
}

/// Creates a directory of this user if it does not exist.
///
/// # Errors
/// The error of `mkdir(2)`, or that of [`check_private`].
pub fn create_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check_private(path, rustix::process::geteuid().as_raw())
}

/// Refuses what is not a directory of this user alone: others could have created files there.
///
/// # Errors
/// `NotFound` if it does not exist; `PermissionDenied` if others can access it.
pub fn check_private(path: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{}: expected a directory owned by user {user}, with mode 0700",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn directories_of_others_and_links_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = rustix::process::geteuid().as_raw();
        let path = folder.path().join("a");
        assert!(check_private(&path, own).is_err());
        create_private(&path).expect("a directory");
        create_private(&path).expect("it is there");
        assert!(check_private(&path, own + 1).is_err());
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        assert!(check_private(&link, own).is_err());
        fs::set_permissions(&path, Permissions::from_mode(0o750)).expect("a mode");
        assert!(check_private(&path, own).is_err() && create_private(&path).is_err());
    }

    /// Who has a lock, and keeps it, makes nobody wait for ever; a lock that is given back in time is taken.
    #[test]
    fn a_lock_is_waited_for_so_long_and_no_longer() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let held = file.reopen().expect("the file");
        held.lock_shared().expect("a lock");
        let error = lock_within(file.as_file(), 2 * STEP).expect_err("it is locked");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let release = thread::spawn(move || {
            thread::sleep(2 * STEP);
            drop(held);
        });
        lock_within(file.as_file(), Duration::from_secs(60)).expect("the lock");
        release.join().expect("the thread");
    }
}

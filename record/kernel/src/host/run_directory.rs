//! The directory in which recorders note what must be undone if they are killed. It is accessible to root only.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::private_directory;

/// Its path.
pub const PATH: &str = "/run/usdtrec";
/// The file that is locked while leftovers are removed.
const REPAIR: &str = "repair.lock";
/// Interval at which a lock is tried again.
const STEP: Duration = Duration::from_micros(100);

/// Creates the directory if it does not exist.
///
/// # Errors
/// Those of [`private_directory::create`].
pub fn create() -> io::Result<PathBuf> {
    private_directory::create(PATH.as_ref())?;
    Ok(PathBuf::from(PATH))
}

/// Locks the directory until the file is closed, for the moment of one change of a semaphore that other recorders change, too.
///
/// # Errors
/// Those of [`check`], `open(2)` and [`lock_within`].
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
    /// Those of [`check`], `open(2)` and [`lock_within`].
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
/// Those of [`private_directory::check`].
pub fn check() -> io::Result<()> {
    private_directory::check(PATH.as_ref(), 0)
}

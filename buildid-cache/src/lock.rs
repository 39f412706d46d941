//! The lock for changes of the cache.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::process::geteuid;

use crate::directory::Directory;

/// Name of the lock file in the cache directory.
const LOCK: &str = ".usdtrec-lock";
/// Delay before the callback is called.
const MESSAGE_DELAY: Duration = Duration::from_secs(1);
/// Interval between attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Mode bits that allow group and others to write.
const SHARED: u32 = 0o022;

/// The held lock. The kernel releases it when the file is closed, even if the process is killed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a cache. `waiting` is called once after a second, with the id of the process that holds the lock, if known.
    pub(crate) fn take(cache: &Directory, waiting: impl FnOnce(Option<u32>)) -> io::Result<Self> {
        let file = open(cache)?;
        let start = Instant::now();
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if start.elapsed() >= MESSAGE_DELAY
                && let Some(waiting) = waiting.take()
            {
                waiting(holder(&file));
            }
            sleep(PAUSE);
        }
    }
}

/// Opens the lock file. Only users who can write the cache can open it and thus lock it.
fn open(cache: &Directory) -> io::Result<File> {
    let shared = cache.metadata()?.mode() & SHARED;
    // Readable and writable for everyone who can write the directory.
    let mode = 0o600 | shared | shared << 1;
    let file = cache
        .open_file(LOCK, mode)
        // A lock file of another user, in a shared directory, can be locked without write permission.
        .or_else(|error| cache.read_file(LOCK).map_err(|_| error))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("the lock is not a regular file"));
    }
    if metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o777 != mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}

/// The process that holds a lock on the file, from /proc/locks (proc_locks(5)): `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE …`.
fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (major(metadata.dev()), minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, inode, ..] if inode == wanted => pid.parse().ok(),
            _ => None,
        }
    })
}

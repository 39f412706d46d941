//! The lock that changes of the cache hold.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::process::geteuid;

use crate::beneath::Directory;

/// Name of the lock file in the cache directory.
const LOCK: &str = ".usdtrec-lock";
/// How long is waited without a word.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// Bits of a mode that let others than the owner write.
const SHARED: u32 = 0o022;

/// The held lock; the kernel lets go of it when the file is closed, however the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a cache. `waiting` is called once after a second, with the process that holds it if the kernel says.
    pub(crate) fn take(cache: &Directory, waiting: impl FnOnce(Option<u32>)) -> io::Result<Self> {
        let file = open(cache)?;
        let begun = Instant::now();
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if begun.elapsed() >= PATIENCE
                && let Some(waiting) = waiting.take()
            {
                waiting(holder(&file));
            }
            sleep(PAUSE);
        }
    }
}

/// Opens the lock file. Only who may change the cache can open it, and so lock it.
fn open(cache: &Directory) -> io::Result<File> {
    let shared = cache.metadata()?.mode() & SHARED;
    // 0600, and for whom else the directory is to be written.
    let mode = 0o600 | shared | shared << 1;
    let file = cache
        .open_file(LOCK, mode)
        // Another user's lock file in a directory that we share can be locked all the same.
        .or_else(|error| cache.read_file(LOCK).map_err(|_| error))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("the lock is no regular file"));
    }
    if metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o777 != mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}

/// The process that holds a lock on the file, by /proc/locks (proc_locks(5)): `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE …`.
fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (major(metadata.dev()), minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, place, ..] if place == wanted => pid.parse().ok(),
            _ => None,
        }
    })
}

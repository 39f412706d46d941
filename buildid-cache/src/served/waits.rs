//! The files whose file systems are waited for, so that who waits can say for which.

use std::fs;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer may take without being a wait.
const FREE_TIME: Duration = Duration::from_millis(100);

static WAITS: Mutex<Waits> = Mutex::new(Waits {
    now: Vec::new(),
    number: 0,
    longest: None,
});

struct Waits {
    now: Vec<Wait>,
    /// Number of waits that began.
    number: u64,
    /// The longest that has ended.
    longest: Option<EndedWait>,
}

struct Wait {
    number: u64,
    since: Instant,
    file: WaitedFile,
}

struct EndedWait {
    time: Duration,
    path: PathBuf,
}

/// A file that is waited for.
#[derive(Clone, Debug)]
pub(super) enum WaitedFile {
    /// It is opened.
    Path(PathBuf),
    /// It is open in this process, until the wait has ended.
    Open(RawFd),
}

impl WaitedFile {
    /// Its path, which the kernel knows without the file system.
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Open(descriptor) => fs::read_link(format!("/proc/self/fd/{descriptor}")).ok(),
        }
    }
}

/// A wait for an answer about a file, which ends with this.
#[derive(Debug)]
pub(super) struct BegunWait {
    number: u64,
}

impl BegunWait {
    pub(super) fn begin(file: WaitedFile) -> Self {
        let mut waits = waits();
        waits.number += 1;
        let number = waits.number;
        waits.now.push(Wait {
            number,
            since: Instant::now(),
            file,
        });
        Self { number }
    }
}

impl Drop for BegunWait {
    fn drop(&mut self) {
        let mut waits = waits();
        let Some(at) = waits.now.iter().position(|wait| wait.number == self.number) else {
            return;
        };
        let wait = waits.now.swap_remove(at);
        let time = wait.since.elapsed();
        let longest = waits.longest.as_ref().map_or(FREE_TIME, |wait| wait.time);
        if time > longest
            && let Some(path) = wait.file.path()
        {
            waits.longest = Some(EndedWait { time, path });
        }
    }
}

fn waits() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that was waited for the longest until now; `None` if all have answered at once.
#[must_use]
pub fn awaited_file() -> Option<PathBuf> {
    let waits = waits();
    let longest = waits.longest.as_ref();
    let least = longest.map_or(FREE_TIME, |wait| wait.time);
    let oldest = waits.now.iter().min_by_key(|wait| wait.since);
    match oldest.filter(|wait| wait.since.elapsed() > least) {
        Some(wait) => wait.file.path(),
        None => longest.map(|wait| wait.path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_waited_for_has_a_name() {
        let long = BegunWait::begin(WaitedFile::Path("/mnt/silent/app".into()));
        std::thread::sleep(2 * FREE_TIME);
        let short = BegunWait::begin(WaitedFile::Path("/usr/bin/true".into()));
        assert_eq!(awaited_file(), Some("/mnt/silent/app".into()));
        drop(short);
        drop(long);
        // It has answered, and was the longest.
        assert_eq!(awaited_file(), Some("/mnt/silent/app".into()));
    }
}

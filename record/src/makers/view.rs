//! What a process sees, looked up while it runs.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::{Rc, Weak};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use super::clocks::Clocks;
use crate::host::process::{self, Process, live_directory};

/// Maximum number of directories that are kept open.
const MAX_OPEN_DIRECTORIES: usize = 256;
/// Flags of a handle of a directory.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What a process sees.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Its number in its own pid namespace.
    pub(super) number: i32,
    /// Its user.
    pub(super) owner: u32,
    /// When it began, ticks since the host started.
    pub(super) start: u64,
    /// Its `/tmp`; `None` if too many others are open.
    pub(super) tmp: Option<Rc<OwnedFd>>,
}

/// The `/tmp` directories of processes, by device and inode, which stay those of the directory while it is open. They are open while views have them: an
/// open directory keeps its file system from being unmounted.
#[derive(Debug, Default)]
pub(super) struct TmpDirs(HashMap<(u64, u64), Weak<OwnedFd>>);

impl View {
    /// What a process sees now; `None` if it has ended.
    pub(super) fn for_process(pid: i32, dirs: &mut TmpDirs) -> Option<Self> {
        let process = Process::open(pid).ok()?;
        let stat = process.stat().ok()?;
        let numbers = process.status().ok()?.pids;
        if stat.has_ended() && stat.num_threads <= 1 {
            return None;
        }
        Some(Self {
            number: *numbers.last()?,
            owner: process.owner().ok()?,
            start: stat.start,
            tmp: dirs.tmp(pid),
        })
    }

    /// When the process began, ns of the time of day.
    pub(super) fn began(&self, clocks: Clocks) -> u64 {
        clocks.since_boot(process::nanoseconds(self.start))
    }
}

impl TmpDirs {
    fn tmp(&mut self, pid: i32) -> Option<Rc<OwnedFd>> {
        let dir = open(&live_directory(pid).join("root"))?;
        let found = fstat(&dir).ok()?;
        let key = (found.st_dev, found.st_ino);
        if let Some(known) = self.0.get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        if self.0.len() >= MAX_OPEN_DIRECTORIES {
            self.0.retain(|_, known| known.strong_count() > 0);
        }
        if self.0.len() >= MAX_OPEN_DIRECTORIES {
            return None;
        }
        let dir = Rc::new(dir);
        self.0.insert(key, Rc::downgrade(&dir));
        Some(dir)
    }
}

/// Opens `/tmp` below a root directory. What is mounted there stays mounted while it is open.
pub(super) fn open(root: &Path) -> Option<OwnedFd> {
    let root = openat(CWD, root, HANDLE, Mode::empty()).ok()?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root.as_fd(), "tmp", HANDLE, Mode::empty(), resolve).ok()
}

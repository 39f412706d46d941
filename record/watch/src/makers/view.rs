//! What a process sees, looked up while it runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::{fs, io};

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_buildid_cache::served::{Handle, Patience, Reader};
use usdtrec_kernel::host::process::{self, EXITING, Process, live_directory};

use super::clocks::Clocks;
use crate::limits::MAX_OPEN_DIRECTORIES;

/// What a process sees.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Its number in its own pid namespace.
    pub(super) number: i32,
    /// Its user.
    pub(super) owner: u32,
    /// When it began, ticks since the host started.
    pub(super) start: u64,
    /// Its `/tmp`.
    pub(super) tmp: Tmp,
}

/// The `/tmp` directory of a process.
#[derive(Clone, Debug)]
pub(super) enum Tmp {
    /// It is open.
    Open(Rc<Handle>),
    /// There is none, or too many others are open.
    Not,
    /// Its file system did not answer in the time that the loop has.
    Slow,
}

impl Tmp {
    pub(super) fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Open(handle) => Some(handle),
            Self::Not | Self::Slow => None,
        }
    }
}

/// The `/tmp` directories of processes, by device and inode, which stay those of the directory while it is open. They are open while views have them: an
/// open directory keeps its file system from being unmounted.
#[derive(Debug, Default)]
pub(super) struct TmpDirs(HashMap<FileId, Weak<Handle>>);

impl View {
    /// What a process sees now; `None` if it has ended.
    pub(super) fn for_process(pid: i32, dirs: &mut TmpDirs) -> Option<Self> {
        let process = Process::open(pid).ok()?;
        let stat = process.stat().ok()?;
        let numbers = process.status().ok()?.pids;
        if stat.has_ended() && stat.num_threads <= 1 {
            return None;
        }
        let owner = process.owner().ok()?;
        let tmp = dirs.tmp(pid);
        // A process that ended meanwhile has no root directory any more.
        if tmp.handle().is_none() && process.stat().ok()?.flags & EXITING != 0 {
            return None;
        }
        Some(Self {
            number: *numbers.last()?,
            owner,
            start: stat.start,
            tmp,
        })
    }

    /// When the process began, ns of the time of day.
    pub(super) fn began(&self, clocks: Clocks) -> u64 {
        clocks.since_boot(process::nanoseconds(self.start))
    }
}

impl TmpDirs {
    fn tmp(&mut self, pid: i32) -> Tmp {
        let dir = match open(&tmp_path(pid), pid) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Tmp::Slow,
            Err(_) => return Tmp::Not,
        };
        let key = dir.stat().id;
        if let Some(known) = self.0.get(&key).and_then(Weak::upgrade) {
            return Tmp::Open(known);
        }
        if self.0.len() >= MAX_OPEN_DIRECTORIES {
            self.0.retain(|_, known| known.strong_count() > 0);
        }
        if self.0.len() >= MAX_OPEN_DIRECTORIES {
            return Tmp::Not;
        }
        let dir = Rc::new(dir);
        self.0.insert(key, Rc::downgrade(&dir));
        Tmp::Open(dir)
    }
}

/// The path of the `/tmp` that a process sees. One that shares this program's mount namespace and root directory shares `/tmp`: that path leads there also after
/// the process has ended.
fn tmp_path(pid: i32) -> PathBuf {
    let process = live_directory(pid);
    let is_shared = ["ns/mnt", "root"].iter().all(|link| {
        let own = fs::read_link(Path::new("/proc/self").join(link));
        own.is_ok_and(|own| fs::read_link(process.join(link)).is_ok_and(|its| its == own))
    });
    match is_shared {
        true => "/tmp".into(),
        false => process.join("root/tmp"),
    }
}

/// Opens a directory that a process sees. What is mounted there stays mounted while it is open.
pub(super) fn open(path: &Path, pid: i32) -> io::Result<Handle> {
    Handle::of_path(path, Reader::of_process(pid, Patience::Short))
}

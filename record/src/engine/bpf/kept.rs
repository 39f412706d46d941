//! The map of stopped processes, pinned so that it survives if the recorder and its guard are both killed.
//!
//! `/run/usdtrec` is accessible to root only. For each lossless recording it has a file that is locked while the recorder or its guard
//! runs, and in the BPF file system `bpf` below it, the map with the same name. A process that gets the lock of such a file continues the
//! processes in the map.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use procfs::process::Process;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::sys;
use crate::engine::owner::Owner;

/// The directory.
const DIRECTORY: &str = "/run/usdtrec";
/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const BPF_FS: i64 = 0xcafe_4a11;

/// The entry of a recording. It is kept when this is dropped, until [`forget`].
#[derive(Debug)]
pub(super) struct Kept {
    /// Its name.
    pub(super) name: String,
    /// The locked file. Processes that inherit the descriptor hold the lock, too.
    pub(super) lock: File,
}

/// A process that was stopped by a recorder that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedProcess {
    /// Process id.
    pub pid: u32,
    /// Whether it is still the same process, and stopped.
    pub is_stopped: bool,
}

impl Kept {
    /// Pins a map of stopped processes.
    pub(super) fn new(map: BorrowedFd<'_>) -> io::Result<Self> {
        let directory = prepare()?;
        let name = Owner::of_this_process()?.to_string();
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(directory.join(&name))?;
        lock.lock()?;
        let kept = Self { name, lock };
        sys::pin(map, &path_of(&pin(&kept.name))?).inspect_err(|_| forget(&kept.name))?;
        Ok(kept)
    }
}

/// Removes an entry.
pub(super) fn forget(name: &str) {
    // The map first: without it there is nothing to continue.
    let _ = fs::remove_file(pin(name));
    let _ = fs::remove_file(Path::new(DIRECTORY).join(name));
}

/// The processes that were stopped by recorders that were killed with their guards. With `heal`, continues those that are still stopped,
/// and removes the entries.
///
/// # Errors
/// The error of reading `/run/usdtrec`, unless it does not exist; an error if others than root can access it.
pub(crate) fn stopped_processes(heal: bool) -> io::Result<Vec<StoppedProcess>> {
    match check() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    }
    let mut processes = Vec::new();
    for entry in fs::read_dir(DIRECTORY)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if Owner::parse(&name).is_none() {
            continue;
        }
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW);
        let lock = options.open(entry.path())?;
        match lock.try_lock() {
            // The recorder or its guard is running.
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        if let Ok(map) = sys::pinned(&path_of(&pin(&name))?) {
            processes.extend(in_map(&map, heal));
        }
        if heal {
            forget(&name);
        }
    }
    Ok(processes)
}

fn in_map(map: &OwnedFd, heal: bool) -> Vec<StoppedProcess> {
    let mut processes = Vec::new();
    let mut last = 0;
    while let Ok(pid) = sys::next_key(map.as_fd(), last) {
        last = pid;
        let Ok(when) = sys::time_of(map.as_fd(), pid) else {
            continue;
        };
        let is_stopped = is_stopped(pid, when, heal);
        processes.push(StoppedProcess { pid, is_stopped });
    }
    processes
}

/// Whether a process is stopped that was started before a time (ns since boot); a later process may have the same id. If so, and with
/// `heal`, continues it.
fn is_stopped(pid: u32, when: u64, heal: bool) -> bool {
    let Some(id) = pid.try_into().ok().and_then(Pid::from_raw) else {
        return false;
    };
    // The handle ensures that the process that was checked gets the signal.
    let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else {
        return false;
    };
    let stat = Process::new(id.as_raw_nonzero().get()).and_then(|process| process.stat());
    let is_it = stat.is_ok_and(|stat| {
        let started = stat.starttime.saturating_mul(1_000_000_000) / procfs::ticks_per_second();
        stat.state == 'T' && started <= when
    });
    if is_it && heal {
        let _ = pidfd_send_signal(&process, Signal::CONT);
    }
    is_it
}

/// Path of the map of an entry.
fn pin(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join("bpf").join(name)
}

fn path_of(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Creates the directory if it does not exist, and mounts the BPF file system in it.
fn prepare() -> io::Result<PathBuf> {
    let directory = PathBuf::from(DIRECTORY);
    let bpf = directory.join("bpf");
    for path in [&directory, &bpf] {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        check()?;
    }
    if rustix::fs::statfs(&bpf)?.f_type != BPF_FS {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"bpf", &bpf, c"bpf", flags, c"mode=0700")?;
    }
    Ok(directory)
}

/// Refuses the directory if others than root could have created files there.
fn check() -> io::Result<()> {
    let metadata = fs::symlink_metadata(DIRECTORY)?;
    if metadata.is_dir() && metadata.uid() == 0 && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{DIRECTORY} is not a directory of root's alone (mode 0700)"),
    ))
}

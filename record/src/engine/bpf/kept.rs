//! What outlives a recorder and its guard that are killed together: the map of the processes that they stopped.
//!
//! `/run/usdtrec` is root's alone. For each recording with `--lossless` it has a file, locked by the recorder and its guard as long as one of
//! them lives, and below `bpf`, a BPF file system, the map under the same name. Who takes the lock of such a file heals: he lets the processes
//! go on that are in the map.

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

/// Where all of it is.
const DIRECTORY: &str = "/run/usdtrec";
/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const BPF_FS: i64 = 0xcafe_4a11;

/// A recording's entry. It stays when this is dropped, until [`forget`].
#[derive(Debug)]
pub(super) struct Kept {
    /// Its name.
    pub(super) name: String,
    /// Locked; who inherits the descriptor holds the lock, too.
    pub(super) lock: File,
}

/// A process that a recorder stopped which lives no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedProcess {
    /// Process id.
    pub pid: u32,
    /// Whether it still is the process that was stopped, and stopped.
    pub is_stopped: bool,
}

impl Kept {
    /// Keeps a map of stopped processes for whoever heals.
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
    // The map first: without it there is nothing to heal.
    let _ = fs::remove_file(pin(name));
    let _ = fs::remove_file(Path::new(DIRECTORY).join(name));
}

/// The processes that recorders stopped which have been killed with their guards. With `heal` those that are stopped still go on, and
/// nothing more is known of them afterwards.
///
/// # Errors
/// That of reading `/run/usdtrec`, unless it does not exist; it is refused if it is not root's alone.
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
            // The recorder or its guard lives.
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

/// Whether a process is stopped that ran already at a moment (ns since boot): a later one has got the same id. If so, and with `heal`, it goes
/// on.
fn is_stopped(pid: u32, when: u64, heal: bool) -> bool {
    let Some(id) = pid.try_into().ok().and_then(Pid::from_raw) else {
        return false;
    };
    // What is looked at is what gets the signal.
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

/// Where an entry's map is.
fn pin(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join("bpf").join(name)
}

fn path_of(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Makes the directory, if there is none, and mounts the BPF file system in it.
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

/// Refuses the directory if others than root could have put something there.
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

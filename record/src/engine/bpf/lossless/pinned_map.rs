//! The map of stopped processes, pinned so that it survives if the recorder and its guard are both killed.
//!
//! `/run/usdtrec` is accessible to root only. For each lossless recording it has a file that is locked while the recorder or its guard
//! runs, and in the BPF file system `bpf` below it, the map with the same name. A process that gets the lock of such a file continues the
//! processes in the map.
//!
//! The BPF file system is mounted below `/run/usdtrec`, and the mount stays. The map has the time of each stop. If
//! recorder and guard are both killed, the next lossless recording or `doctor --heal` continues those processes that
//! are still the same and stopped.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use usdtrec_kernel::bpf::sys;
use usdtrec_kernel::host::process::{Process, pidfd};
use usdtrec_kernel::host::run_directory;
use usdtrec_kernel::host::run_directory::PATH as DIRECTORY;

use super::stopped_map::{self, StopNote};
use crate::engine::perf::owner::Owner;

/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const BPF_FS: i64 = 0xcafe_4a11;

/// How long the guard checks the map after a normal end of the recorder: its probes are usually removed by then. A repair checks it for as
/// long after the end of a killed recorder, whose probes the kernel has removed.
pub(in crate::engine::bpf) const GUARD_TIME: Duration = Duration::from_millis(200);
/// Maximum time for which a repair waits for a recorder that is ending, or for its guard.
const ENDING: Duration = Duration::from_secs(15);
/// Interval at which a repair checks the map.
const STEP: Duration = Duration::from_millis(10);

/// The entry of a recording. It is kept when this is dropped, until [`forget`].
#[derive(Debug)]
pub(in crate::engine::bpf) struct PinnedEntry {
    /// Its name.
    pub(in crate::engine::bpf) name: String,
    /// The locked file. Processes that inherit the descriptor hold the lock, too.
    pub(in crate::engine::bpf) lock: File,
}

/// A process that was stopped by a recorder that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedProcess {
    /// Process id.
    pub pid: u32,
    /// Whether it is still the same process, and stopped.
    pub is_stopped: bool,
}

impl PinnedEntry {
    /// Pins a map of stopped processes.
    pub(in crate::engine::bpf) fn new(map: BorrowedFd<'_>) -> io::Result<Self> {
        let directory = prepare()?;
        let name = Owner::of_this_process()?.to_string();
        let lock = locked(&directory.join(&name))?;
        let kept = Self { name, lock };
        sys::pin(map, &path_of(&pin(&kept.name))?).inspect_err(|_| forget(&kept.name))?;
        Ok(kept)
    }
}

/// Creates a file and locks it. Who repairs may have locked and removed it before.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let lock = options.open(path)?;
        lock.lock()?;
        if lock.metadata()?.nlink() > 0 {
            return Ok(lock);
        }
    }
}

/// Removes an entry.
pub(in crate::engine::bpf) fn forget(name: &str) {
    // The map first: without it there is nothing to continue.
    let _ = fs::remove_file(pin(name));
    let _ = fs::remove_file(Path::new(DIRECTORY).join(name));
}

/// What [`stopped_processes`] does about the processes that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Nothing.
    ReportOnly,
    /// It continues those that are stopped now.
    Now,
    /// It waits for recorders that are just ending, up to [`ENDING`], and continues what their programs stop meanwhile.
    UntilEnded,
}

/// The processes that were stopped by recorders that were killed with their guards. A repair removes the entries of recorders that have
/// ended.
///
/// # Errors
/// The error of reading `/run/usdtrec`, unless it does not exist; an error if others than root can access it.
pub(crate) fn stopped_processes(repair: Repair) -> io::Result<Vec<StoppedProcess>> {
    match run_directory::check() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    }
    let repairer = Repairer {
        repair,
        us: Owner::of_this_process()?,
        deadline: Instant::now() + ENDING,
    };
    let mut processes = Vec::new();
    for entry in fs::read_dir(DIRECTORY)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(owner) = Owner::parse(&name) {
            let found = repairer.stopped_by(&name, &owner)?;
            processes.extend(
                found
                    .into_iter()
                    .map(|(pid, is_stopped)| StoppedProcess { pid, is_stopped }),
            );
        }
    }
    Ok(processes)
}

/// One search for stopped processes.
struct Repairer {
    repair: Repair,
    /// The calling process.
    us: Owner,
    /// When waiting ends.
    deadline: Instant,
}

impl Repairer {
    /// The processes in the map of a recorder whose lock is free, and whether each was stopped. Removes the entry if the recorder has
    /// ended, after a repair.
    fn stopped_by(&self, name: &str, owner: &Owner) -> io::Result<BTreeMap<u32, bool>> {
        let mut found = BTreeMap::new();
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW);
        let lock = options.open(Path::new(DIRECTORY).join(name))?;
        while !is_free(&lock)? {
            // The recorder or its guard is running.
            if !(self.may_wait() && owner.is_ending(&self.us)) {
                return Ok(found);
            }
            thread::sleep(STEP);
        }
        let Ok(map) = sys::pinned(&path_of(&pin(name))?) else {
            if self.repair != Repair::ReportOnly {
                forget(name);
            }
            return Ok(found);
        };
        let mut ended = None;
        loop {
            for stop in stopped_map::stopped(map.as_fd()) {
                let is_stopped = is_stopped(map.as_fd(), stop, self.repair);
                *found.entry(stop.pid).or_default() |= is_stopped;
            }
            if self.repair == Repair::ReportOnly {
                return Ok(found);
            }
            if ended.is_none() && owner.has_ended(&self.us) {
                ended = Some(Instant::now());
            }
            match ended {
                // A signal that was sent just before may not have stopped its process yet.
                Some(ended) if ended.elapsed() < GUARD_TIME => {}
                Some(_) => {
                    forget(name);
                    return Ok(found);
                }
                None if self.may_wait() => {}
                None => return Ok(found),
            }
            thread::sleep(STEP);
        }
    }

    fn may_wait(&self) -> bool {
        self.repair == Repair::UntilEnded && Instant::now() < self.deadline
    }
}

/// Whether no other process holds a lock, which the caller then holds.
fn is_free(lock: &File) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a process in the map is stopped. A repair continues it, and removes it from the map.
fn is_stopped(map: BorrowedFd<'_>, stop: StopNote, repair: Repair) -> bool {
    let Ok(pid) = stop.pid.try_into() else {
        return false;
    };
    // Without one, the process could not be continued.
    if pidfd(stop.pid).is_none() {
        return false;
    }
    let stat = Process::open(pid).and_then(|process| process.stat());
    let is_it = stat.is_ok_and(|stat| stat.state == b'T' && stop.may_be_of(&stat));
    if is_it && repair != Repair::ReportOnly {
        stopped_map::continue_process(map, stop);
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
    let directory = run_directory::create()?;
    let bpf = directory.join("bpf");
    match DirBuilder::new().mode(0o700).create(&bpf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if rustix::fs::statfs(&bpf)?.f_type != BPF_FS {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"bpf", &bpf, c"bpf", flags, c"mode=0700")?;
    }
    Ok(directory)
}

//! File systems whose files a program or another host serves (FUSE, NFS): opening or reading a file may wait for an answer for ever.
//!
//! Files of other file systems are not expected to wait. An overlay may be above a served one; then its files do wait, which is not known.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::file_mapping::DeviceNumber;
use crate::live_thread::live_directory;

/// Types of such file systems, as `/proc/PID/mountinfo` has them. Those with a subtype (`fuse.sshfs`) begin with one of them and a dot.
const TYPES: [&str; 9] = [
    "fuse", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "lustre",
];
/// For how long the type of a device is known.
const VALID: Duration = Duration::from_secs(10);
/// Maximum number of devices that are known.
const MAX_KNOWN: usize = 1024;
/// Maximum number of bytes of mounts that are read.
const MAX_MOUNTS_BYTES: u64 = 8 << 20;
/// How long a file system has to answer.
const ANSWER_TIME: Duration = Duration::from_millis(100);
/// Maximum number of threads that wait for answers.
const MAX_THREADS: usize = 128;
/// Name of the threads, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "served";

/// The devices that were looked up, and when.
static KNOWN: Mutex<Option<HashMap<DeviceNumber, Known>>> = Mutex::new(None);

/// Whether a device is that of a served file system.
#[derive(Clone, Copy)]
struct Known {
    is_served: bool,
    since: Instant,
}

/// Whether the file system of a device is served, as the mounts of a process say.
fn is_served(pid: u32, device: DeviceNumber) -> bool {
    // That of a block device.
    if device.major != 0 {
        return false;
    }
    let now = Instant::now();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(found) = known.get(&device)
        && now.duration_since(found.since) < VALID
    {
        return found.is_served;
    }
    let mounts = File::open(live_directory(pid).join("mountinfo"));
    let kind = mounts.ok().and_then(|mounts| kind_in(mounts, device));
    // The process has ended, or nothing of the file system is mounted, as of a memfd.
    let Some(kind) = kind else {
        return false;
    };
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    let is_served = is_served_kind(&kind);
    known.insert(
        device,
        Known {
            is_served,
            since: now,
        },
    );
    is_served
}

/// The type of a device's file system in mounts.
fn kind_in(mounts: impl io::Read, device: DeviceNumber) -> Option<String> {
    let DeviceNumber { major, minor } = device;
    let device = format!("{major}:{minor}");
    let lines = BufReader::new(mounts.take(MAX_MOUNTS_BYTES)).split(b'\n');
    lines.map_while(Result::ok).find_map(|line| {
        let line = String::from_utf8_lossy(&line);
        // Of the fields before the hyphen the third is the device; the first after it is the type (proc_pid_mountinfo(5)).
        let (mount, file_system) = line.split_once(" - ")?;
        let is_it = mount.split(' ').nth(2) == Some(&device);
        is_it.then(|| file_system.split(' ').next().map(str::to_owned))?
    })
}

fn is_served_kind(kind: &str) -> bool {
    let (kind, _) = kind.split_once('.').unwrap_or((kind, ""));
    TYPES.contains(&kind)
}

/// Does work with a file that a process maps. That of a served file system is not waited for for longer than 0.1 s.
///
/// # Errors
/// `TimedOut`: the file system has not answered in time, or too many threads wait for answers. The error of starting a thread.
pub fn limited<T: Send + 'static>(
    pid: u32,
    device: DeviceNumber,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    match is_served(pid, device) {
        true => in_time(work),
        false => Ok(work()),
    }
}

/// Does work with a file of a served file system: in a thread, for which nobody waits any longer when the time is over. It ends when the file system answers.
/// If the server has taken the request, does not answer, and ignores interrupts, this process cannot end before.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    run(&THREADS, ANSWER_TIME, work)
}

/// One of the threads.
struct Permit(&'static AtomicUsize);

impl Permit {
    /// `None` if there are too many.
    fn take(threads: &'static AtomicUsize) -> Option<Self> {
        let permit = Self(threads);
        (threads.fetch_add(1, SeqCst) < MAX_THREADS).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn run<T: Send + 'static>(
    threads: &'static AtomicUsize,
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let permit = Permit::take(threads).ok_or_else(no_answer)?;
    let (send, result) = sync_channel(1);
    thread::Builder::new()
        .name(NAME.to_owned())
        .spawn(move || {
            let _permit = permit;
            let _ = send.send(work());
        })?;
    result.recv_timeout(time).map_err(|_| no_answer())
}

fn no_answer() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "its file system has not answered in time",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const MOUNTS: &[u8] = b"21 28 0:20 / /proc rw,relatime shared:12 - proc proc rw\n\
        30 28 0:41 / /a\\040b rw master:1 - fuse.sshfs host:/ rw,user_id=0\n\
        31 28 0:42 /x /nfs rw - nfs4 host:/x rw\n\
        32 28 0:43 / /tmp rw - tmpfs tmpfs rw\n\
        33 28 0:44 / /fused - fusectl none rw\n";

    #[test]
    fn served_file_systems_are_known_by_their_types() {
        let found = [20, 41, 42, 43, 44, 45].map(|minor| {
            let device = DeviceNumber { major: 0, minor };
            kind_in(MOUNTS, device).is_some_and(|kind| is_served_kind(&kind))
        });
        assert_eq!(found, [false, true, true, false, false, false]);
    }

    #[test]
    fn mounts_of_this_process_are_read() {
        let proc = rustix::fs::stat("/proc/self").unwrap().st_dev;
        let device = DeviceNumber {
            major: rustix::fs::major(proc),
            minor: rustix::fs::minor(proc),
        };
        assert!(!is_served(std::process::id(), device));
    }

    #[test]
    fn work_without_an_answer_is_not_waited_for_and_bounded() {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let long = Duration::from_secs(60);
        assert_eq!(run(&THREADS, long, || 7).unwrap(), 7);
        let ends: Vec<_> = (0..MAX_THREADS)
            .map(|_| {
                let (end, ended) = channel::<()>();
                let error = run(&THREADS, Duration::ZERO, move || ended.recv()).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                end
            })
            .collect();
        let refused = run(&THREADS, long, || 7).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(ends);
        while THREADS.load(SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(run(&THREADS, long, || 7).unwrap(), 7);
    }
}

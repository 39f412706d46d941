//! Processes whose mappings are locked by a thread that waits: munmap(2) of a shared mapping waits until a FUSE file system has taken its pages, however
//! long that does not answer, and mmap(2) and others may wait, too.
//!
//! When the kernel attaches to a file, it waits for the lock of the mappings of each process that maps the file, and holds a lock that each fork of
//! the host needs. Measured with Linux 6.18: while any user's process waited so in munmap(2), and mapped the C++ library, attaching to that let no
//! process of the host fork. The kernel does not report who has that lock, so threads that do not run, in such a system call, are inspected.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::served::{Patience, read_maps};
use usdtrec_buildid_cache::{FileMapping, MappedInode};

use super::process::{Process, Stat};

/// State of a thread that waits and takes no signals (proc_pid_stat(5)).
const UNINTERRUPTIBLE: u8 = b'D';
/// Parts of the names of functions in the kernel that change mappings.
const CALLS: [&str; 9] = [
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "_brk",
    "shmat",
    "shmdt",
    "userfaultfd",
];
/// Part of the names of functions in which a thread waits for the lock itself (kernel/locking/rwsem.c): another thread has it.
const WAITS_FOR_LOCK: &str = "rwsem_down_";
/// How long a thread must not have run to count as stuck, and how long one is waited for. Not running for so long may be what a busy disk takes.
const STUCK_TIME: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How long the threads that were found are not looked for again, and how much longer than the last search took.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
const SEARCH_SHARE: u32 = 50;

/// The last search.
static FOUND: Mutex<Option<Search>> = Mutex::new(None);

#[derive(Debug)]
struct Search {
    stuck: Vec<Waiting>,
    next: Instant,
}

/// A thread that waits in a system call that changes mappings.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    pid: i32,
    tid: i32,
    /// How often it has stopped running.
    switches: u64,
    /// When it was found.
    since: Instant,
}

/// A process that maps a file and whose mappings are locked by a thread that waits. Such a thread is waited for, 1 s from when it was found.
pub fn stuck_process(file: impl Fn() -> Option<MappedInode>) -> Option<i32> {
    loop {
        let stuck = stuck_threads();
        if stuck.is_empty() {
            return None;
        }
        let file = file()?;
        let deadline = Instant::now() + MAX_WAIT;
        let first = first_of(stuck, deadline, |pid| maps(pid, &file))?;
        if first.since.elapsed() >= MAX_WAIT {
            return Some(first.pid);
        }
        thread::sleep(STUCK_TIME);
    }
}

/// The first of the threads whose process maps a file. Any user may have very many threads that wait, and processes with very many mappings: each process
/// is looked at once, and one that was not until the deadline may map it.
fn first_of(stuck: Vec<Waiting>, deadline: Instant, maps: impl Fn(i32) -> bool) -> Option<Waiting> {
    let mut others = HashSet::new();
    stuck
        .into_iter()
        .find(|thread| Instant::now() >= deadline || others.insert(thread.pid) && maps(thread.pid))
}

/// The threads that are stuck now.
fn stuck_threads() -> Vec<Waiting> {
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    if found.as_ref().is_none_or(|found| found.next <= begun) {
        let mut stuck = waiting_threads();
        if !stuck.is_empty() {
            thread::sleep(STUCK_TIME);
            stuck.retain(Waiting::still_waits);
        }
        let earlier = found.as_ref().map_or(&[][..], |found| &found.stuck);
        wait_since(&mut stuck, earlier);
        let interval = SEARCH_INTERVAL.max(begun.elapsed() * SEARCH_SHARE);
        let next = Instant::now() + interval;
        *found = Some(Search { stuck, next });
    }
    let found = found.iter_mut().flat_map(|found| {
        found.stuck.retain(Waiting::still_waits);
        &found.stuck
    });
    found.copied().collect()
}

/// Has threads that have not run since an earlier search wait since then, so that each further file does not wait for them again.
fn wait_since(stuck: &mut [Waiting], earlier: &[Waiting]) {
    let earlier = earlier.iter();
    let earlier: HashMap<i32, &Waiting> = earlier.map(|thread| (thread.tid, thread)).collect();
    for thread in stuck {
        if let Some(known) = earlier.get(&thread.tid)
            && (known.pid, known.switches) == (thread.pid, thread.switches)
        {
            thread.since = known.since;
        }
    }
}

/// Looks at all threads. Only root sees where they wait: for others there is none.
fn waiting_threads() -> Vec<Waiting> {
    let mut all = Vec::new();
    for process in Process::all().into_iter().flatten() {
        let waits = |stat: io::Result<Stat>| stat.is_ok_and(|stat| stat.state == UNINTERRUPTIBLE);
        let Ok(first) = process.stat() else {
            continue;
        };
        let tids = match first.num_threads {
            ..=1 => vec![process.pid],
            _ => process.threads().unwrap_or_default(),
        };
        let waiting = tids
            .into_iter()
            .filter(|tid| waits(process.thread_stat(*tid)));
        all.extend(waiting.filter_map(|tid| Waiting::find(process.pid, tid)));
    }
    all
}

impl Waiting {
    /// `None` if the thread does not wait in such a call.
    fn find(pid: i32, tid: i32) -> Option<Self> {
        let directory = format!("/proc/{pid}/task/{tid}");
        let stack = std::fs::read_to_string(format!("{directory}/stack")).ok()?;
        let changes_mappings = CALLS.iter().any(|call| stack.contains(call));
        if !changes_mappings || stack.contains(WAITS_FOR_LOCK) {
            return None;
        }
        let thread = Process::in_directory(tid, directory.as_ref()).ok()?;
        let waits = thread.stat().ok()?.state == UNINTERRUPTIBLE;
        let switches = thread.status().ok()?.switches;
        let since = Instant::now();
        waits.then_some(Self {
            pid,
            tid,
            switches,
            since,
        })
    }

    /// Whether it has not run since.
    fn still_waits(&self) -> bool {
        Self::find(self.pid, self.tid).is_some_and(|now| now.switches == self.switches)
    }
}

/// Whether a process maps a file. One whose mappings cannot be read in time may.
fn maps(pid: i32, file: &MappedInode) -> bool {
    match read_maps(pid.cast_unsigned(), Patience::Short) {
        Ok(maps) => FileMapping::parse_all(&maps).any(|map| map.mapped_inode() == *file),
        Err(error) => error.kind() == io::ErrorKind::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn waiting(pid: i32, tid: i32, since: Instant) -> Waiting {
        Waiting {
            pid,
            tid,
            switches: 5,
            since,
        }
    }

    /// A process with many threads that wait is looked at once, and none after the deadline.
    #[test]
    fn many_threads_that_wait_do_not_keep_a_file_waiting() {
        let now = Instant::now();
        let looked = Cell::new(0);
        let threads = || {
            (0..1000)
                .map(|tid| waiting(1, tid, now))
                .collect::<Vec<_>>()
        };
        let none = |_| {
            looked.set(looked.get() + 1);
            false
        };
        let found = first_of(threads(), now + MAX_WAIT, none);
        assert!(found.is_none() && looked.get() == 1);
        let found = first_of(threads(), now, none);
        assert!(found.is_some() && looked.get() == 1);
    }

    /// A thread that has not run since it was found is waited for once, and not for each file.
    #[test]
    fn a_thread_that_stays_is_waited_for_once() {
        let (first, second) = (Instant::now(), Instant::now() + MAX_WAIT);
        let earlier = [waiting(1, 1, first), waiting(1, 2, first)];
        let ran = Waiting {
            switches: 6,
            ..waiting(1, 2, second)
        };
        let mut stuck = [waiting(1, 1, second), ran, waiting(3, 4, second)];
        wait_since(&mut stuck, &earlier);
        assert_eq!(stuck.map(|thread| thread.since), [first, second, second]);
    }
}

//! What this process may take: its resource limits, its priority and its CPU time. The limits are open files, as a recording keeps each file with probes open and a descriptor for each link or event;
//! and locked memory, to which the kernel charges maps before Linux 5.11.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};

/// The limits that this process began with.
static BEGAN_WITH: OnceLock<Limits> = OnceLock::new();

struct Limits {
    open_files: Rlimit,
    locked_memory: Rlimit,
}

impl Limits {
    fn get() -> Self {
        Self {
            open_files: getrlimit(Resource::Nofile),
            locked_memory: getrlimit(Resource::Memlock),
        }
    }
}

/// Raises the soft limit of open files to the hard one. Commands that are run keep the one that this process began with
/// (see `restore`): `select(2)` cannot wait for descriptors beyond 1023.
pub fn raise_open_files() {
    let limit = BEGAN_WITH.get_or_init(Limits::get).open_files;
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Not all recordings need it; if one does, opening a file reports the error.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Removes the limit of locked memory (`RLIMIT_MEMLOCK`), which takes `CAP_SYS_RESOURCE`. Commands that are run keep the one that this process
/// began with. Returns whether it was removed.
pub fn remove_locked_memory() -> bool {
    BEGAN_WITH.get_or_init(Limits::get);
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    setrlimit(Resource::Memlock, unlimited).is_ok()
}

/// Restores the limits that this process began with, in a child between fork and exec. Calls only setrlimit(2).
pub fn restore() {
    if let Some(limits) = BEGAN_WITH.get() {
        let _ = setrlimit(Resource::Nofile, limits.open_files);
        let _ = setrlimit(Resource::Memlock, limits.locked_memory);
    }
}

/// The highest priority (setpriority(2)).
const HIGHEST: i32 = -20;

/// Raises the priority of this thread and of processes that it starts, until it is dropped by this thread: held processes use the CPU while
/// they wait for it. Does nothing without permission.
#[derive(Debug)]
pub struct HighPriority {
    before: Option<i32>,
}

impl HighPriority {
    /// Raises it from now on.
    pub fn begin() -> Self {
        // For setpriority(2), 0 is this thread.
        let before = getpriority_process(None).ok();
        let before = before.filter(|_| setpriority_process(None, HIGHEST).is_ok());
        Self { before }
    }

    /// Runs a job that no process waits for, at normal priority.
    pub fn at_usual_priority<T>(&self, job: impl FnOnce() -> T) -> T {
        if let Some(before) = self.before {
            // If this fails, the job runs at high priority, too.
            let _ = setpriority_process(None, before);
        }
        let done = job();
        if self.before.is_some() {
            let _ = setpriority_process(None, HIGHEST);
        }
        done
    }
}

impl Drop for HighPriority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = setpriority_process(None, before);
        }
    }
}

/// CPU time of the calling thread, and of the processes that this process has waited for so far, in user and kernel mode.
pub fn of_thread_and_children() -> Duration {
    Usage::read(libc::RUSAGE_THREAD).time + Usage::read(libc::RUSAGE_CHILDREN).time
}

/// The time that a piece of work of a thread takes, without that for which it waits for a CPU.
#[derive(Debug)]
pub struct WorkTime {
    begun: Instant,
    usage: Usage,
}

impl WorkTime {
    /// The calling thread begins the work.
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
            usage: Usage::read(libc::RUSAGE_THREAD),
        }
    }

    /// How long it took until now: the CPU time; or the whole time, if the thread has waited for something else than a CPU, as for a file system.
    pub fn taken(&self) -> Duration {
        let usage = Usage::read(libc::RUSAGE_THREAD);
        match usage.waits == self.usage.waits {
            true => usage.time.saturating_sub(self.usage.time),
            false => self.begun.elapsed(),
        }
    }

    /// The same of work that helpers share: the whole time, which on a busy host is mostly a wait for CPUs, but at most four times the CPU time of
    /// this thread.
    pub fn taken_with_helpers(&self) -> Duration {
        const SHARED: u32 = 4;
        let usage = Usage::read(libc::RUSAGE_THREAD);
        let own = usage.time.saturating_sub(self.usage.time);
        self.taken().min(own * SHARED)
    }
}

/// What getrusage(2) says of threads or processes.
#[derive(Debug)]
struct Usage {
    /// CPU time in user and kernel mode.
    time: Duration,
    /// Number of voluntary context switches.
    waits: i64,
}

impl Usage {
    fn read(who: libc::c_int) -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage(2) writes the structure, or nothing.
        unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
        // SAFETY: zeros are a value of it.
        let usage = unsafe { usage.assume_init() };
        let times = [usage.ru_utime, usage.ru_stime].map(|time| {
            let micros = u64::try_from(time.tv_usec).unwrap_or(0);
            Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(micros)
        });
        Self {
            time: times.iter().sum(),
            waits: usage.ru_nvcsw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_thread_counts() {
        let before = of_thread_and_children();
        let begun = std::time::Instant::now();
        while of_thread_and_children() < before + Duration::from_millis(5) {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn sleep_counts_as_a_whole() {
        let work = WorkTime::begin();
        std::thread::sleep(Duration::from_millis(5));
        assert!(work.taken() >= Duration::from_millis(5));
    }
}

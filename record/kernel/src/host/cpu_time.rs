//! CPU time of this thread and of processes that it has waited for.

use std::time::{Duration, Instant};

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

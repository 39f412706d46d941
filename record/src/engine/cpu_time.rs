//! CPU time of this thread and of processes that it has waited for.

use std::time::Duration;

/// CPU time of the calling thread, and of the processes that this process has waited for so far, in user and kernel mode.
pub(super) fn of_thread_and_children() -> Duration {
    usage(libc::RUSAGE_THREAD) + usage(libc::RUSAGE_CHILDREN)
}

fn usage(who: libc::c_int) -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage(2) writes the structure, or nothing.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: zeros are a value of it.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| {
            let micros = u64::try_from(time.tv_usec).unwrap_or(0);
            Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(micros)
        })
        .sum()
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
}

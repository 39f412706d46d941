//! Running a command, and what it took.

use std::io;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a command took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Wall-clock time, seconds.
    pub(crate) seconds: f64,
    /// CPU time of all its threads, user and system, seconds.
    pub(crate) cpu: f64,
    /// Most memory resident at once, bytes.
    pub(crate) memory: u64,
}

/// Runs a command, its output thrown away.
#[allow(clippy::zombie_processes, reason = "wait4 waits for it")]
pub(crate) fn run(mut command: Command) -> Taken {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begin = Instant::now();
    let child = command.spawn().expect("a program");
    let pid = i32::try_from(child.id()).expect("a process id");
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are to room for what the call fills; the child is waited for nowhere else.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!(waited, pid, "{}", io::Error::last_os_error());
    assert_eq!(status, 0, "{command:?}");
    // SAFETY: zeroed above; every bit pattern is a valid rusage.
    let usage = unsafe { usage.assume_init() };
    let cpu = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Taken {
        seconds,
        cpu: cpu(usage.ru_utime) + cpu(usage.ru_stime),
        memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10,
    }
}

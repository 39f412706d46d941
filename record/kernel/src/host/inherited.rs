//! What this process inherits from its caller besides descriptors: signals that are ignored or blocked, and standard streams that are closed.
//!
//! `nohup`, a shell without job control (background jobs ignore SIGINT and SIGQUIT), systemd (SIGPIPE) and careless parents (SIGCHLD, any mask) have
//! signals ignored or blocked, which `execve(2)` preserves. A recorder needs SIGCHLD, as with it ignored `waitpid(2)` knows no status, and no blocked
//! signal, which could not end it. The commands that it runs get what the caller gave, as with `env(1)`.
//!
//! Rust's runtime ignores SIGPIPE and opens `/dev/null` for each closed standard stream before `main`. So both are looked at before it.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::{io, ptr};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendFlags, send};
use rustix::process::getpid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};

/// Signals that the kernel knows.
const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=64;

/// What [`look`] found: bit 0 to 2 for standard streams that were closed, bit 3 if SIGPIPE was ignored.
static EARLY: AtomicU8 = AtomicU8::new(0);
const PIPE_IGNORED: u8 = 1 << 3;

/// What [`settle`] found.
static INHERITED: OnceLock<Signals> = OnceLock::new();

/// Whether signals end this process at once that the kernel ignores for the first process of a pid namespace unless they are handled.
static ENDS_FIRST_PROCESS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

struct Signals {
    /// Bit N - 1 for signal N.
    ignored: u64,
    blocked: libc::sigset_t,
}

/// Called by the loader before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Looks at what Rust's runtime changes. Makes system calls only.
extern "C" fn look() {
    let mut found = 0;
    for stream in 0..3 {
        // SAFETY: fcntl(2) takes integers.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            found |= 1 << stream;
        }
    }
    if is_ignored(SIGPIPE) {
        found |= PIPE_IGNORED;
    }
    EARLY.store(found, Ordering::Relaxed);
}

/// Whether a standard stream (0 to 2) was closed when this process began; `/dev/null` is in its place.
#[must_use]
pub fn was_closed(stream: u8) -> bool {
    stream < 3 && EARLY.load(Ordering::Relaxed) & (1 << stream) != 0
}

/// Notes which signals are ignored and blocked, for the commands that are run. Then none is blocked, and SIGCHLD is not ignored. SIGINT, SIGTERM, SIGHUP
/// and SIGQUIT end the first process of a pid namespace like any other, until [`Signals`](crate::signals::Signals) catches them. For the beginning of `main`.
pub fn settle() {
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: `none` is filled, `blocked` has room for a set.
    let failed =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), blocked.as_mut_ptr()) };
    if failed != 0 {
        return;
    }
    let found_ignored = |signal: &libc::c_int| match *signal {
        SIGPIPE => EARLY.load(Ordering::Relaxed) & PIPE_IGNORED != 0,
        signal => is_ignored(signal),
    };
    let ignored = SIGNALS.filter(found_ignored);
    let ignored = ignored.fold(0, |all, signal| all | bit(signal));
    let _ = INHERITED.set(Signals {
        ignored,
        // SAFETY: the call succeeded, so the set is filled.
        blocked: unsafe { blocked.assume_init() },
    });
    if ignored & bit(SIGCHLD) != 0 {
        // SAFETY: the default action, which has no function.
        unsafe { libc::signal(SIGCHLD, libc::SIG_DFL) };
    }
    if getpid().is_init() {
        let ends = ENDS_FIRST_PROCESS.get_or_init(|| Arc::new(AtomicBool::new(true)));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            if ignored & bit(signal) == 0 {
                let ends = Arc::clone(ends);
                // Without it the signal has no effect, as in any program there.
                let _ =
                    signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, ends);
            }
        }
    }
}

/// Signals have another effect from now on than to end this process at once.
pub fn handle_signals() {
    if let Some(ends) = ENDS_FIRST_PROCESS.get() {
        ends.store(false, Ordering::SeqCst);
    }
}

/// Ignores and blocks what the caller of this process ignored and blocked, in a child between fork and exec. Makes system calls only.
pub fn restore() {
    let Some(inherited) = INHERITED.get() else {
        return;
    };
    for signal in SIGNALS.filter(|&signal| inherited.ignored & bit(signal) != 0) {
        // SAFETY: to ignore a signal needs no function.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the set comes from pthread_sigmask.
    unsafe {
        libc::pthread_sigmask(
            libc::SIG_SETMASK,
            &raw const inherited.blocked,
            ptr::null_mut(),
        );
    }
}

/// Whether this process ignores a signal now.
#[must_use]
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call writes the present one to `action`, which has room for it.
    let failed = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: an all-zero sigaction is valid, and the call has filled it if it succeeded.
    failed == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Writes a byte to `wake` at each arrival of a signal, until the process ends.
///
/// # Errors
/// The error of `sigaction(2)`.
pub fn wake_at(signal: libc::c_int, wake: Arc<UnixStream>) -> io::Result<()> {
    let action = move || {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // If it is full, the reader has enough to read.
        let _ = send(&wake, &[0], flags);
    };
    // SAFETY: the action makes one system call, and that of rustix does not change errno.
    unsafe { signal_hook::low_level::register(signal, action) }.map(|_| ())
}

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// `/dev/null`; in a root without devices, a file in memory.
///
/// # Errors
/// The error of `memfd_create(2)`.
pub fn null_stream() -> io::Result<Stdio> {
    let file = match File::options().read(true).write(true).open("/dev/null") {
        Ok(device) => device,
        Err(_) => File::from(memfd_create("null", MemfdFlags::CLOEXEC)?),
    };
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_signal_wakes_the_reader() {
        let (mut arrived, sent) = UnixStream::pair().unwrap();
        wake_at(libc::SIGWINCH, Arc::new(sent)).unwrap();
        rustix::process::kill_process(getpid(), rustix::process::Signal::WINCH).unwrap();
        assert_eq!(arrived.read(&mut [0; 4]).unwrap(), 1);
        assert!(!is_ignored(libc::SIGWINCH) && is_ignored(SIGPIPE));
    }
}

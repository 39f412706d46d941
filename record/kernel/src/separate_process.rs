//! System calls that write breakpoints into programs are made in a process of their own, so that a SIGKILL of the recorder does not
//! interrupt them: while the signal is pending, the kernel can neither write a breakpoint nor remove one.
//!
//! The process has its own session and its own name, because kill commands often address a group of processes or a name. If both processes
//! are killed during a call, the kernel still leaves breakpoints behind.
//!
//! The process shares the recorder's memory and descriptor table. The thread that starts it is suspended meanwhile, unless it is killed. In
//! that case the process completes its call and exits, which closes the last copies of all descriptors: exiting processes get no signals.
//!
//! If the process is killed alone, the recorder notices. What both leave behind if they are killed during a call is
//! removed when the next recording of the same probes ends (`tests/kill_matrix.rs`). A kill during the recording needs
//! none of this: the kernel removes the probes when the process exits.

use std::io;
use std::os::fd::OwnedFd;

/// Size of its stack, bytes: enough for system calls.
const STACK: usize = 128 << 10;

/// Makes a call in a process of its own, or in this process if no other can be started. The call must not start threads or processes, allocate or
/// free memory, or take another lock: the process may be killed meanwhile and would leave the lock taken in our memory.
///
/// # Errors
/// The error of the call; or the process was killed ([`was_killed`]). The descriptors that it may have opened are then unknown, and are
/// closed when the recorder exits.
pub fn planting<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut outcome = None;
    let status = run(&mut || outcome = Some(call()));
    match (outcome, status) {
        (Some(outcome), _) => outcome,
        (None, Err(_)) => call(),
        (None, Ok(())) => {
            // Attaching the same again and detaching removes what the kernel left behind.
            drop(call());
            Err(io::Error::new(
                KILLED,
                "the process that attaches probes was killed",
            ))
        }
    }
}

/// Closes descriptors in a process of its own, or in this process if no other can be started. Waits until the kernel has removed their breakpoints.
pub fn close(mut descriptors: Vec<OwnedFd>) {
    // Those that a process which was killed has not closed are closed by the second call. The vector is freed here.
    let _ = planting(|| {
        while let Some(descriptor) = descriptors.pop() {
            drop(descriptor);
        }
        Ok(())
    });
}

const KILLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Whether the error means that the process that made the call was killed.
pub fn was_killed(error: &io::Error) -> bool {
    error.kind() == KILLED
}

/// Runs `job` in a process that shares our memory, and waits until it has exited.
fn run(job: &mut dyn FnMut()) -> io::Result<()> {
    // A fat pointer does not fit into the argument.
    let mut job = job;
    let mut stack: Vec<u128> = vec![0; STACK / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let blocked = Blocked::all()?;
    // SAFETY: the child runs `enter` on its own stack, whose top is aligned for every architecture, with a pointer to `job` of the type
    // that `enter` expects. CLONE_VFORK suspends this thread until the child has exited, so the two never use the thread-local storage at
    // the same time, and stack and job outlive the child. If this thread is killed meanwhile, nothing frees them: the child keeps our
    // memory.
    let child = unsafe {
        libc::clone(
            enter,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_VFORK,
            (&raw mut job).cast(),
        )
    };
    let error = io::Error::last_os_error();
    drop(blocked);
    if child < 0 {
        return Err(error);
    }
    let mut status = 0;
    // SAFETY: `status` is a local integer. __WALL, because the child sends no signal when it exits.
    while unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    Ok(())
}

/// Entry point of the child, which exits when this returns.
extern "C" fn enter(job: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `run` passes a pointer of this type, and does not use the job until the child has exited.
    let job = unsafe { &mut *job.cast::<&mut dyn FnMut()>() };
    // If these fail, the process is killed as easily as the recorder.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"attaches probes");
    job();
    0
}

/// Blocks all signals in this thread, and in a process that it starts, until this is dropped: handlers that run in both would report two
/// signals.
struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    fn all() -> io::Result<Self> {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the set.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` is filled; `before` has room for a set.
        let failed =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: the call succeeded, so `before` is filled.
        let before = unsafe { before.assume_init() };
        Ok(Self { before })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set comes from pthread_sigmask.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_opens_descriptors_for_us() {
        let (process, file) = planting(|| {
            let file = std::fs::File::open("/dev/zero")?;
            Ok((rustix::process::getpid(), OwnedFd::from(file)))
        })
        .unwrap();
        assert_ne!(process, rustix::process::getpid());
        assert_eq!(rustix::io::read(&file, &mut [1; 4]).unwrap(), 4);
    }

    #[test]
    fn errors_are_those_of_the_call() {
        let missing = planting(|| std::fs::File::open("/nowhere")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(!was_killed(&missing));
    }

    #[test]
    fn a_process_that_is_killed_is_said() {
        let us = rustix::process::getpid();
        let killed = planting(|| {
            let process = rustix::process::getpid();
            if process != us {
                rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
            }
            Ok(())
        });
        assert!(was_killed(&killed.unwrap_err()));
    }
}

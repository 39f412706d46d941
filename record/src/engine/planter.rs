//! System calls that write breakpoints into programs are made by a process of its own, so that SIGKILL for the recorder does not reach them:
//! while it is pending the kernel can neither write into programs nor take back what it has written (see [`keeper`](super::keeper)).
//!
//! It is in a session of its own and has a name of its own, as killers often mean a group of processes, or all of a name. Who kills both at
//! once amid a call still makes the kernel leave something.
//!
//! The process shares our memory and our table of descriptors; the thread that starts it stands still meanwhile, unless it is killed. If
//! it is, the process finishes its call and ends, and with it the last copies of all descriptors: ending processes get no signals.

use std::io;

use crate::RecordError;
use crate::error::Interruption;

/// Bytes of its stack: system calls and little around them.
const STACK: usize = 128 << 10;

/// Makes a call in a process of its own; in this one if there can be no other. It must not start threads or processes.
///
/// # Errors
/// The call's; or the process was killed ([`end_if_killed`]), and nobody knows what it has opened: that is closed as we end.
pub(super) fn planting<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut outcome = None;
    let status = run(&mut || outcome = Some(call()));
    match (outcome, status) {
        (Some(outcome), _) => outcome,
        (None, Err(_)) => call(),
        (None, Ok(())) => {
            // What the kernel could not take back goes when another who plants the same ends.
            drop(call());
            Err(io::Error::new(
                KILLED,
                "the process that plants probes was killed",
            ))
        }
    }
}

const KILLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Ends the planting if the error is that the process was killed which made the call.
pub(super) fn end_if_killed(error: &io::Error) -> Result<(), RecordError> {
    if error.kind() != KILLED {
        return Ok(());
    }
    let error = io::Error::new(error.kind(), error.to_string());
    Err(Interruption::Killed(error).into())
}

/// Runs `job` in a process that shares our memory, and waits until that has ended.
fn run(job: &mut dyn FnMut()) -> io::Result<()> {
    // A fat pointer does not fit into the argument.
    let mut job = job;
    let mut stack: Vec<u128> = vec![0; STACK / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let blocked = Blocked::all()?;
    // SAFETY: the child runs `enter` on a stack of its own, whose top is aligned for every architecture, with a pointer to `job` that fits what
    // `enter` takes. CLONE_VFORK: until it has ended this thread stands still, so that the two never use the thread's local storage
    // at the same time, and stack and job outlive it. If this thread is killed meanwhile, nothing frees them: our memory lives as
    // long as the child has it.
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
    // SAFETY: `status` is an integer of ours. It ends without a signal for us: that takes __WALL.
    while unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    Ok(())
}

/// Where the child begins. When this returns it ends.
extern "C" fn enter(job: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `run` passes a pointer to this, which nobody else uses until we have ended.
    let job = unsafe { &mut *job.cast::<&mut dyn FnMut()>() };
    // Without either it is as easily killed as we are.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"plants probes");
    job();
    0
}

/// No signal reaches this thread, nor a process that it starts, until this is dropped: handlers that run twice would tell of two signals.
struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    fn all() -> io::Result<Self> {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the set.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` is filled; `before` is a set's room.
        let failed =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: it did not fail, so `before` is filled.
        let before = unsafe { before.assume_init() };
        Ok(Self { before })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was given by the system.
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
    use std::os::fd::OwnedFd;

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
        assert!(end_if_killed(&missing).is_ok());
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
        assert!(end_if_killed(&killed.unwrap_err()).is_err());
    }
}

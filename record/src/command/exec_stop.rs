//! Stopping a process after its `execve(2)`, before its first instruction (ptrace(2)).

use std::io;
use std::ptr;

/// A process that is stopped at its next `execve(2)`. Dropping this continues it. It must be dropped by the thread that created it.
#[derive(Debug)]
pub(super) struct ExecStop {
    pid: libc::pid_t,
}

impl ExecStop {
    /// Begins to trace a process.
    ///
    /// # Errors
    /// The error of ptrace(2): the process is traced already, or may not be.
    pub(super) fn begin(pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
        // SAFETY: PTRACE_SEIZE takes no address, and options as a number.
        let failed = unsafe {
            libc::ptrace(
                libc::PTRACE_SEIZE,
                pid,
                ptr::null_mut::<libc::c_void>(),
                libc::c_long::from(libc::PTRACE_O_TRACEEXEC),
            )
        };
        if failed == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { pid })
    }

    /// Waits until the process has stopped after its `execve(2)`, or has ended. Signals that it gets before are delivered.
    pub(super) fn wait(&self) {
        while let Some(status) = self.stopped() {
            let (signal, event) = (status & 0xff, status >> 8);
            if event == libc::PTRACE_EVENT_EXEC {
                return;
            }
            let signal = if event == 0 { signal } else { 0 };
            // SAFETY: PTRACE_CONT takes no address, and a signal as a number.
            unsafe {
                libc::ptrace(
                    libc::PTRACE_CONT,
                    self.pid,
                    ptr::null_mut::<libc::c_void>(),
                    libc::c_long::from(signal),
                );
            }
        }
    }

    /// Waits until the process stops. Returns the signal, with the event above the first 8 bits; `None` if it has ended. Its status is left
    /// to its parent.
    fn stopped(&self) -> Option<libc::c_int> {
        loop {
            // SAFETY: an all-zero siginfo_t is valid.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
            // SAFETY: `info` has room for the status.
            let failed = unsafe {
                libc::waitid(libc::P_PID, self.pid.cast_unsigned(), &raw mut info, flags)
            };
            if failed != 0 {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return None;
            }
            // SAFETY: waitid(2) filled the status of a child.
            let status = unsafe { info.si_status() };
            return matches!(info.si_code, libc::CLD_TRAPPED | libc::CLD_STOPPED).then_some(status);
        }
    }
}

impl Drop for ExecStop {
    fn drop(&mut self) {
        // SAFETY: PTRACE_DETACH takes no address, and no signal. It fails if the process has ended.
        unsafe {
            libc::ptrace(
                libc::PTRACE_DETACH,
                self.pid,
                ptr::null_mut::<libc::c_void>(),
                0_i64,
            );
        }
    }
}

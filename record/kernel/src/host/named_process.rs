//! A process that is no child of this one, and why it ended, as far as the kernel says.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::geteuid;

use super::process::{self, Process};

/// Its perf events end a little before the process does.
const END_TIME: Duration = Duration::from_millis(100);

/// A process whose status is asked for when it has ended.
#[derive(Debug)]
pub struct NamedProcess {
    /// Its id.
    pub pid: u32,
    /// `None` if it has ended before.
    process: Option<OpenProcess>,
}

#[derive(Debug)]
struct OpenProcess {
    pidfd: OwnedFd,
    /// When it began, clock ticks since boot.
    start: u64,
}

impl NamedProcess {
    /// Opens it, if it runs.
    pub fn open(pid: u32) -> Self {
        let open = || {
            let pidfd = process::pidfd(pid)?;
            let start = Process::open(pid.try_into().ok()?).ok()?.stat().ok()?.start;
            Some(OpenProcess { pidfd, start })
        };
        Self {
            pid,
            process: open(),
        }
    }

    /// Its status; `None` if it runs, or that is not known. The kernel says it of any process that has ended and was waited for since Linux 6.15, and
    /// before that, and while its parent has not waited for it, in `/proc`.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        let process = self.process.as_ref()?;
        process.wait();
        let waited_for = || process.status_of_waited();
        let status = waited_for().or_else(|| self.status_of_zombie(process.start));
        // Meanwhile its parent may have waited for it.
        status.or_else(waited_for).map(ExitStatus::from_raw)
    }

    /// The same without waiting: a process whose end was reported a moment ago.
    pub fn status_now(&self) -> Option<ExitStatus> {
        let process = self.process.as_ref()?;
        let status = process.status_of_waited();
        let status = status.or_else(|| self.status_of_zombie(process.start));
        status.map(ExitStatus::from_raw)
    }

    fn status_of_zombie(&self, start: u64) -> Option<i32> {
        let stat = Process::open(self.pid.try_into().ok()?).ok()?.stat().ok()?;
        let is_it = stat.start == start && stat.has_ended() && stat.num_threads <= 1;
        // It is 0 as well for who may not read it.
        let is_known = stat.exit_status != 0 || geteuid().is_root();
        (is_it && is_known).then_some(stat.exit_status)
    }
}

impl OpenProcess {
    fn wait(&self) {
        let timeout = Timespec::try_from(END_TIME).ok();
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // After an error or a signal its status is asked for all the same.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    /// The status as wait(2) has it, by its pidfd (`PIDFD_GET_INFO`).
    fn status_of_waited(&self) -> Option<i32> {
        let wanted = u64::from(libc::PIDFD_INFO_EXIT);
        // SAFETY: an all-zero pidfd_info is valid.
        let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
        info.mask = wanted;
        // SAFETY: `info` has the size that the request says, and outlives the call.
        let failed =
            unsafe { libc::ioctl(self.pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) };
        (failed == 0 && info.mask & wanted != 0).then_some(info.exit_code)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// `wait` is done by the parent: before it, and after it where the kernel says it then.
    #[test]
    fn the_status_of_a_process_that_has_ended() {
        for (script, code, signal) in [("exit 3", Some(3), None), ("kill -9 $$", None, Some(9))] {
            let mut child = Command::new("sh");
            child.args(["-c", &format!("read line; {script}")]);
            let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
            let named = NamedProcess::open(child.id());
            assert_eq!(named.exit_status(), None, "it runs");
            drop(child.stdin.take());
            let own = named.exit_status();
            let expected = child.wait().unwrap();
            assert_eq!((expected.code(), expected.signal()), (code, signal));
            assert_eq!(own, Some(expected), "a zombie");
            let later = named.exit_status();
            assert!(later.is_none() || later == Some(expected), "{later:?}");
        }
        assert_eq!(NamedProcess::open(u32::MAX).exit_status(), None);
    }
}

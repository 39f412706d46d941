//! The recorder that owns a group of tracefs events, as a name that is unique on the host, across containers.
//!
//! A process id alone is not unique: each container has a pid 1, and ids are reused. With the number of the pid namespace and the start
//! time of the process it is unique until the host is rebooted, which removes the events.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use rustix::process::Signal;
use usdtrec_kernel::host::process::{EXITING, Process, Stat};

/// Prefix of the names of our groups.
const PREFIX: &str = "usdtrec";

/// Inode of the first pid namespace, that of the host (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
const HOST: u64 = 0xEFFF_FFFC;

/// The recorder that owns a group. Displayed, it is the group's name: `usdtrec_PID_START_NAMESPACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process id in its pid namespace.
    pid: u32,
    /// Its start time, clock ticks since boot.
    start: u64,
    /// Inode of its pid namespace.
    namespace: u64,
}

impl Owner {
    /// The calling process.
    pub fn of_this_process() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self {
            pid,
            start: Process::open(pid.cast_signed())?.stat()?.start,
            namespace: namespace("/proc/self/ns/pid")?,
        })
    }

    /// Parses the name of a group; `None` if it is not the name of a recorder's group.
    pub fn parse(group: &str) -> Option<Self> {
        let mut words = group.split('_');
        (words.next()? == PREFIX).then_some(())?;
        let owner = Self {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            namespace: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(owner)
    }

    /// Process id in its pid namespace.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has ended, as far as `us`, the calling process, can see. A process that cannot be seen, in a pid namespace that
    /// is not below our own, is assumed to run.
    pub fn has_ended(&self, us: &Self) -> bool {
        // A /proc of another pid namespace has other processes with these ids.
        if !fs::read_link("/proc/self")
            .is_ok_and(|own| own.as_os_str() == us.pid.to_string().as_str())
        {
            return false;
        }
        if self.namespace == us.namespace {
            let process = i32::try_from(self.pid).map(Process::open);
            return match process {
                Ok(Ok(process)) => process
                    .stat()
                    .is_ok_and(|stat| stat.start != self.start || is_zombie(&stat)),
                _ => !Path::new("/proc").join(self.pid.to_string()).exists(),
            };
        }
        us.namespace == HOST && self.is_not_on_the_host().unwrap_or(false)
    }

    /// Whether the process has ended, or has been killed and ends soon, as far as `us`, the calling process, can see.
    pub fn is_ending(&self, us: &Self) -> bool {
        if self.has_ended(us) {
            return true;
        }
        if self.namespace != us.namespace {
            return false;
        }
        let Ok(process) = i32::try_from(self.pid).map(Process::open) else {
            return false;
        };
        process.is_ok_and(|process| {
            let (stat, status) = (process.stat(), process.status());
            let kill = 1 << (Signal::KILL.as_raw() - 1);
            stat.is_ok_and(|stat| stat.flags & EXITING != 0)
                || status.is_ok_and(|status| status.pending & kill != 0)
        })
    }

    /// Whether no process of the host has this namespace and start time. `None` if a process cannot be read.
    fn is_not_on_the_host(&self) -> Option<bool> {
        for process in Process::all().ok()? {
            let Ok(stat) = process.stat() else { continue };
            if is_zombie(&stat) {
                continue;
            }
            let is_as_old = stat.start == self.start;
            match namespace(format!("/proc/{}/ns/pid", process.pid)) {
                // A time namespace shifts the start times that its processes see, and therefore the one in the name.
                Ok(namespace) if namespace == self.namespace => {
                    if is_as_old || !has_our_clock(process.pid) {
                        return Some(false);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Reading it is not permitted (CAP_SYS_PTRACE).
                Err(_) if is_as_old => return None,
                Err(_) => {}
            }
        }
        Some(true)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            start,
            namespace,
        } = self;
        write!(f, "{PREFIX}_{pid}_{start}_{namespace}")
    }
}

/// Whether a process has ended, and its parent has not waited for it yet. Its files are closed. A process whose first thread has ended
/// before the others is none.
fn is_zombie(stat: &Stat) -> bool {
    stat.has_ended() && stat.num_threads <= 1
}

/// Whether a process is in our time namespace. Kernels before 5.6 have only one.
fn has_our_clock(pid: i32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/time")).ok();
    of(&pid.to_string()) == of("self")
}

/// The inode in `pid:[INODE]`, the target of a namespace's link.
fn namespace(link: impl AsRef<Path>) -> io::Result<u64> {
    let link = fs::read_link(link)?;
    let inode = link
        .to_str()
        .and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    inode.ok_or_else(|| io::Error::other(format!("expected pid:[INODE], found {link:?}")))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_tells_its_owner() {
        let own = Owner::of_this_process().unwrap();
        assert_eq!(Owner::parse(&own.to_string()), Some(own));
        for other in [
            "usdtrec_1",
            "usdtrec_1_2",
            "usdtrec_1_2_3_4",
            "usdtrec_a_2_3",
            "probe_1_2_3",
        ] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    /// Until its parent waits for it, its id is not free.
    #[test]
    fn a_zombie_has_ended() {
        let own = Owner::of_this_process().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (input, pid) = (child.stdin.take(), child.id());
        let stat = || {
            Process::open(pid as i32)
                .and_then(|child| child.stat())
                .unwrap()
        };
        let owner = Owner {
            pid,
            start: stat().start,
            ..own
        };
        assert!(!owner.has_ended(&own));
        drop(input);
        while stat().state != b'Z' {
            std::thread::yield_now();
        }
        assert!(owner.has_ended(&own));
        child.wait().unwrap();
    }

    /// Owners that run are kept; a reused process id is another owner.
    #[test]
    fn only_the_dead_have_ended() {
        let own = Owner::of_this_process().unwrap();
        assert!(!own.has_ended(&own));
        let earlier = Owner {
            start: own.start - 1,
            ..own
        };
        assert!(earlier.has_ended(&own), "its process id lives again");
        let gone = Owner {
            pid: u32::MAX,
            ..own
        };
        assert!(gone.has_ended(&own));
        // Of a namespace that cannot be read.
        let us = Owner {
            namespace: 1,
            ..own
        };
        assert!(!own.has_ended(&us));
    }
}

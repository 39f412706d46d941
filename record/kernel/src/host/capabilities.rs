//! Dropping all capabilities of this process.
//!
//! Capabilities belong to a thread, and a thread can change only its own. So each thread gets a signal, whose handler drops those of its thread. Then
//! `/proc/self/task` says what each thread has. Threads and processes that are started later have what the thread has that starts them.

use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::getpid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::process::{Process, is_gone};
use crate::KernelError;

const NONE: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// How long threads may take to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Interval of asking those again that have not.
const STEP: Duration = Duration::from_millis(1);

/// The signal that threads get.
pub fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

/// Drops the effective, permitted, inheritable and ambient capabilities of all threads, and the bounding set if that is allowed
/// (`CAP_SETPCAP`), and sets `no_new_privs`, with which no executed program gets any.
///
/// # Errors
/// A thread still has some after a few seconds; the errors of `sigaction(2)` and of reading `/proc/self/task`.
pub fn drop_all() -> io::Result<()> {
    let drops_bounding =
        capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::SETPCAP));
    let signal = signal();
    // SAFETY: the action makes only system calls, and those of rustix do not change errno. It stays, because a thread may have the signal
    // pending when this returns.
    unsafe { signal_hook::low_level::register(signal, drop_own) }?;
    let own = Process::open(getpid().as_raw_pid())?;
    let begun = Instant::now();
    // A thread may have started another one before it dropped its own, and after they were listed.
    let mut is_second = false;
    loop {
        let mut keeping = None;
        for tid in own.threads()? {
            let status = match fs::read_to_string(format!("/proc/self/task/{tid}/status")) {
                Ok(status) => status,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error),
            };
            if let Some(kept) = kept(&status, drops_bounding) {
                send(own.pid, tid, signal);
                keeping = Some((tid, kept.replace('\t', " ")));
            }
        }
        match keeping {
            None if is_second => return Ok(()),
            None => is_second = true,
            Some((tid, kept)) if begun.elapsed() >= LIMIT => {
                return Err(io::Error::other(format!("thread {tid} still has {kept}")));
            }
            Some(_) => {
                is_second = false;
                thread::sleep(STEP);
            }
        }
    }
}

/// Does something as if all capabilities were dropped, in a thread of its own.
///
/// # Errors
/// The error of `capset(2)`.
pub fn without<T: Send>(job: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let done = thread::Builder::new().spawn_scoped(scope, || {
            set_capabilities(None, NONE)?;
            Ok(job())
        });
        let done = done?.join();
        done.unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
    })
}

/// Drops those of this thread. What fails is seen in its status.
fn drop_own() {
    let _ = set_no_new_privs(true);
    let _ = clear_ambient_capability_set();
    for bit in 0..u64::BITS {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit));
    }
    let _ = set_capabilities(None, NONE);
}

fn send(pid: i32, tid: i32, signal: i32) {
    // SAFETY: tgkill(2) takes integers, and does nothing if the thread has ended.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// The line of `/proc/PID/task/TID/status` with something that the thread has still, or lacks; `None` if there is none.
fn kept(status: &str, drops_bounding: bool) -> Option<&str> {
    let line = |name: &str| status.lines().find(|line| line.starts_with(name));
    let is_zero = |line: &&str| {
        line.split_once(':')
            .is_some_and(|(_, set)| set.trim().trim_matches('0').is_empty())
    };
    let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
    let sets = sets.into_iter().chain(drops_bounding.then_some("CapBnd:"));
    let mut held = sets.map(|name| line(name).unwrap_or(name));
    // A name alone, for a line that is missing, is as good as an empty set.
    held.find(|line| !is_zero(line)).or_else(|| {
        let privileges = line("NoNewPrivs:").unwrap_or("no NoNewPrivs");
        (!privileges.ends_with("\t1")).then_some(privileges)
    })
}

/// Checks that an engine can work: uprobe_multi links need `CAP_BPF` and `CAP_PERFMON`, events of the uprobe PMU
/// need `CAP_SYS_ADMIN` (seen on Linux 6.18), which includes the other two.
///
/// # Errors
/// [`KernelError::Privilege`].
pub fn check_recording() -> Result<(), KernelError> {
    const PROGRAMS: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
    let is_enough =
        |has: CapabilitySet| has.contains(CapabilitySet::SYS_ADMIN) || has.contains(PROGRAMS);
    // If they cannot be read, the kernel decides.
    if capabilities(None).map_or(true, |has| is_enough(has.effective)) {
        return Ok(());
    }
    let uid = rustix::process::geteuid().as_raw();
    let paranoid = paranoid().map_or_else(String::new, |level| level.to_string());
    Err(KernelError::Privilege { uid, paranoid })
}

/// Whether this process has `CAP_SYS_ADMIN`; also if that cannot be read.
#[must_use]
pub fn has_admin() -> bool {
    is_effective(CapabilitySet::SYS_ADMIN)
}

/// Whether this process may read the memory of those of other users (`CAP_SYS_PTRACE`); also if that cannot be read.
pub fn may_read_processes() -> bool {
    is_effective(CapabilitySet::SYS_PTRACE)
}

fn is_effective(capability: CapabilitySet) -> bool {
    capabilities(None).map_or(true, |has| has.effective.contains(capability))
}

/// `kernel.perf_event_paranoid`: what the kernel permits to users without privileges, -1 for everything.
pub fn paranoid() -> Option<i32> {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    level.ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_still_has_is_found() {
        let status = |bounding: &str, effective: &str, privileges: &str| {
            format!(
                "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t{effective}\nCapBnd:\t{bounding}\nCapAmb:\t0000000000000000\nNoNewPrivs:\t{privileges}\n"
            )
        };
        let (none, all) = ("0000000000000000", "000001ffffffffff");
        assert_eq!(kept(&status(none, none, "1"), true), None);
        assert_eq!(kept(&status(all, none, "1"), false), None);
        assert_eq!(
            kept(&status(all, none, "1"), true),
            Some("CapBnd:\t000001ffffffffff")
        );
        assert_eq!(
            kept(&status(none, "0000000000000400", "1"), true),
            Some("CapEff:\t0000000000000400")
        );
        assert_eq!(kept(&status(none, none, "0"), true), Some("NoNewPrivs:\t0"));
        assert_eq!(kept("Name:\tx\n", false), Some("no NoNewPrivs"));
    }
}

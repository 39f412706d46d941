//! CPU lists: `0-3,6`, as sysfs and perf's `-C` write them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use usdtrec_format::parse_cpu_list;

use crate::{CpuListError, KernelError};

/// Parses a CPU list; the result is sorted and without repeats.
///
/// # Errors
/// [`CpuListError`] with the part that is no CPU number or range, or a range of more than 65,536 CPUs.
pub fn parse(list: &str) -> Result<Vec<u32>, CpuListError> {
    let wrong = |part: &str| CpuListError {
        list: list.to_owned(),
        part: part.to_owned(),
    };
    let mut cpus = Vec::new();
    for range in parse_cpu_list(list).map_err(wrong)? {
        if range.end() - range.start() >= 65_536 {
            return Err(wrong(&format!("{}-{}", range.start(), range.end())));
        }
        cpus.extend(range);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The CPUs that are on line. Where sysfs is not mounted, procfs lists them.
///
/// # Errors
/// [`KernelError::Host`] if neither can be read.
pub fn online() -> Result<Vec<u32>, KernelError> {
    read("/sys/devices/system/cpu/online").or_else(|error| of_stat().ok_or(error))
}

/// One of the CPUs that are on line: CPU 0 may be off line. 0 if neither list can be read.
#[must_use]
pub fn any_online() -> u32 {
    let online = online().unwrap_or_default();
    online.first().copied().unwrap_or_default()
}

/// The CPUs in the lines `cpuN …` of `/proc/stat`, which are those on line (fs/proc/stat.c).
fn of_stat() -> Option<Vec<u32>> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let cpus = stat.lines().filter_map(|line| {
        let number = line.strip_prefix("cpu")?.split(' ').next()?;
        number.parse().ok()
    });
    let cpus: Vec<u32> = cpus.collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// The CPUs that can be on line until the next boot.
///
/// # Errors
/// [`KernelError::Host`] if sysfs cannot be read.
pub fn possible() -> Result<Vec<u32>, KernelError> {
    read("/sys/devices/system/cpu/possible")
}

/// CPUs that went off line or came on line while perf events of single CPUs were open. The kernel closes the events of a CPU that goes off
/// line without reporting it (perf_event_exit_cpu, kernel/events/core.c).
#[derive(Debug)]
pub struct Changes {
    /// The CPUs that were on line at the start.
    opened: Vec<u32>,
    /// The CPUs whose events have counted all the time since these were opened.
    counting: BTreeSet<u32>,
    /// Whether only these CPUs are recorded.
    only: bool,
    changed: BTreeSet<u32>,
    looked: Instant,
    /// Socket with the kernel's messages, which also report a CPU that was off line only briefly. `None` if there is no such socket.
    uevents: Option<OwnedFd>,
}

impl Changes {
    /// Watches; with `only` no CPU but those of `opened`.
    pub fn new(opened: Vec<u32>, only: bool) -> Self {
        Self {
            counting: opened.iter().copied().collect(),
            opened,
            only,
            changed: BTreeSet::new(),
            looked: Instant::now(),
            uevents: uevents().ok(),
        }
    }

    /// The descriptor that becomes readable when a CPU may have gone off line or come on line.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.uevents.as_ref().map(AsFd::as_fd)
    }

    /// Compares the CPUs with sysfs after a message of the kernel, and once per second. Returns the CPUs that came on line and have no
    /// events, each once.
    pub fn look(&mut self) -> Vec<u32> {
        const PAUSE: Duration = Duration::from_secs(1);
        if self.hear_all() || self.looked.elapsed() >= PAUSE {
            self.compare_now()
        } else {
            Vec::new()
        }
    }

    /// Looks at the end.
    pub fn look_now(&mut self) {
        self.hear_all();
        self.compare_now();
    }

    /// Reads all messages. Returns whether one was about a CPU.
    fn hear_all(&mut self) -> bool {
        let mut of_cpus = false;
        let mut message = [0; 4096];
        while let Some(uevents) = &self.uevents {
            match recv(uevents, &mut message, RecvFlags::DONTWAIT) {
                Ok((len, _)) => of_cpus |= self.hear(message.get(..len).unwrap_or_default()),
                // Messages that found no room; there may be more.
                Err(rustix::io::Errno::NOBUFS) => of_cpus = true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        of_cpus
    }

    /// Takes a message of the kernel (`ACTION@DEVPATH`, then a zero). Returns whether it is about a CPU that is recorded.
    fn hear(&mut self, message: &[u8]) -> bool {
        let Some(uevent) = Uevent::from_message(message).filter(|uevent| self.counts(uevent.cpu))
        else {
            return false;
        };
        self.changed.insert(uevent.cpu);
        // The events of a CPU that goes off line are lost. A CPU that came on line may have events already: sysfs lists it before the
        // message is sent.
        if uevent.is_offline {
            self.counting.remove(&uevent.cpu);
        }
        true
    }

    fn compare_now(&mut self) -> Vec<u32> {
        self.looked = Instant::now();
        let Ok(online) = online() else {
            return Vec::new();
        };
        self.compare(&online)
    }

    fn compare(&mut self, online: &[u32]) -> Vec<u32> {
        self.counting.retain(|cpu| online.contains(cpu));
        let online: Vec<u32> = online
            .iter()
            .copied()
            .filter(|cpu| self.counts(*cpu))
            .collect();
        let gone = self.opened.iter().filter(|cpu| !online.contains(cpu));
        self.changed.extend(gone);
        let came: Vec<u32> = online
            .into_iter()
            .filter(|cpu| self.counting.insert(*cpu))
            .collect();
        self.changed.extend(&came);
        came
    }

    /// Whether hits on a CPU are recorded.
    fn counts(&self, cpu: u32) -> bool {
        !self.only || self.opened.contains(&cpu)
    }

    /// Whether there are such.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The CPUs that were away, or came later.
    pub fn changed(&self) -> Vec<u32> {
        self.changed.iter().copied().collect()
    }
}

/// A socket with the kernel's messages about devices. Only the kernel and processes with CAP_NET_ADMIN can send these.
fn uevents() -> rustix::io::Result<OwnedFd> {
    const KERNEL_GROUP: u32 = 1;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::KOBJECT_UEVENT),
    )?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

/// A message that a CPU went off line or came on line. The kernel sends it afterwards (device_offline, device_online, drivers/base/core.c).
struct Uevent {
    cpu: u32,
    is_offline: bool,
}

impl Uevent {
    /// `None` if it is a message of something else.
    fn from_message(message: &[u8]) -> Option<Self> {
        let text = message.split(|&byte| byte == 0).next()?;
        let (action, path) = std::str::from_utf8(text).ok()?.split_once('@')?;
        let cpu = path.strip_prefix("/devices/system/cpu/cpu")?;
        let is_offline = match action {
            "offline" => true,
            "online" => false,
            _ => return None,
        };
        let cpu = cpu.parse().ok()?;
        Some(Self { cpu, is_offline })
    }
}

/// The highest CPU number that can ever be present, plus 1.
///
/// # Errors
/// [`KernelError::Host`] if sysfs cannot be read.
pub fn available() -> Result<u32, KernelError> {
    let present = read("/sys/devices/system/cpu/present").or_else(|_| online())?;
    Ok(present.last().map_or(1, |last| last + 1))
}

/// The CPUs that a file of sysfs lists.
fn read(path: &'static str) -> Result<Vec<u32>, KernelError> {
    let list = fs::read_to_string(path);
    let cpus = list.and_then(|list| parse(&list).map_err(io::Error::other));
    cpus.map_err(KernelError::host(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ranges_and_repeats() {
        assert_eq!(parse("0-2,6,1\n").unwrap(), [0, 1, 2, 6]);
    }

    #[test]
    fn procfs_lists_the_same_cpus_as_sysfs() {
        assert_eq!(of_stat().unwrap(), online().unwrap());
        assert!(online().unwrap().contains(&any_online()));
    }

    #[test]
    fn cpus_that_go_and_come_are_known() {
        let mut changes = Changes::new(vec![0, 1, 2], false);
        assert_eq!(changes.compare(&[0, 1, 2]), [0; 0]);
        assert_eq!(changes.changed(), [0; 0]);
        assert_eq!(changes.compare(&[0, 2, 3]), [3]);
        assert_eq!(changes.compare(&[0, 2, 3]), [0; 0]);
        assert_eq!(changes.compare(&[0, 1, 2]), [1]);
        assert_eq!(changes.changed(), [1, 3]);
        let mut changes = Changes::new(vec![0], true);
        assert_eq!(changes.compare(&[0, 1]), [0; 0]);
        assert_eq!(changes.changed(), [0; 0]);
        assert_eq!(changes.compare(&[1]), [0; 0]);
        assert_eq!(changes.changed(), [0]);
        assert_eq!(changes.compare(&[0, 1]), [0]);
        // One that was away between two looks only.
        let mut changes = Changes::new(vec![0, 1], true);
        for message in [
            &b"add@/devices/system/cpu/cpu1\0ACTION=add\0"[..],
            b"offline@/devices/system/memory/memory1\0",
            b"offline@/devices/system/cpu/cpu7\0",
            b"offline@/devices/system/cpu/cpufreq\0",
        ] {
            assert!(!changes.hear(message));
            assert_eq!(changes.changed(), [0; 0]);
        }
        assert!(changes.hear(b"offline@/devices/system/cpu/cpu1\0ACTION=offline\0"));
        assert_eq!(changes.changed(), [1]);
        assert_eq!(changes.compare(&[0, 1]), [1]);
        // One that was found on line before its message came has events already.
        assert!(changes.hear(b"online@/devices/system/cpu/cpu1\0ACTION=online\0"));
        assert_eq!(changes.compare(&[0, 1]), [0; 0]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["", "a", "3-1", "0-", "-1", "0-4294967295", "1,,2"] {
            assert!(parse(list).is_err(), "{list:?}");
        }
    }
}

//! The control group of a process, by `/proc`.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::clocks::trace_clock::{self, nanoseconds};
use crate::host::process::{EXITING, Process};

/// What the kernel appends to the path of a control group that was removed.
const DELETED: &[u8] = b" (deleted)";

/// Hierarchies of version 1 in which runtimes put containers, by controller; the first is that of perf.
const CONTROLLERS: [&[u8]; 6] = [
    b"perf_event",
    b"memory",
    b"pids",
    b"cpu",
    b"cpuacct",
    b"name=systemd",
];

/// The path of the control group of the process that had a hit at `hit` (ns of the trace's clock); `None` if the process has ended.
///
/// The unified hierarchy (version 2) says it alone where there are no others. Else the first of [`CONTROLLERS`] does in which the process is
/// not in the root, and the unified one after them: with hierarchies of version 1, it has the service that runs the containers.
pub(super) fn path(pid: i32, hit: u64) -> Option<Vec<u8>> {
    let lines = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    // Read after the lines: a process that is not ending now was not ending then.
    let stat = Process::open(pid).and_then(|process| process.stat()).ok()?;
    if stat.started() > boot_time(hit) {
        // Another process has the id.
        return None;
    }
    // In hierarchies of version 1 a process that is ending is in the root.
    let is_ending = stat.flags & EXITING != 0;
    choose(&lines, is_ending).map(<[u8]>::to_vec)
}

/// The time since boot, ns, of a time of the trace's clock, if the host did not sleep since then; else a later time.
fn boot_time(time: u64) -> u64 {
    let boot = nanoseconds(clock_gettime(ClockId::Boottime));
    let since = boot - i128::from(trace_clock::now()) + i128::from(time);
    u64::try_from(since).unwrap_or(0)
}

/// A line of `/proc/PID/cgroup`: `HIERARCHY:CONTROLLERS:PATH`.
struct Line<'a> {
    /// Separated by commas; empty: the unified hierarchy.
    controllers: &'a [u8],
    path: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        Some(Self {
            controllers,
            path: path.strip_suffix(DELETED).unwrap_or(path),
        })
    }

    fn has(&self, controller: &[u8]) -> bool {
        let mut controllers = self.controllers.split(|&byte| byte == b',');
        controllers.any(|has| has == controller)
    }
}

/// The path that says where a process is; `None` if that is not known any more.
fn choose(lines: &[u8], is_ending: bool) -> Option<&[u8]> {
    let lines = lines.split(|&byte| byte == b'\n');
    let lines: Vec<Line<'_>> = lines.filter_map(Line::parse).collect();
    let unified = lines.iter().find(|line| line.controllers.is_empty());
    let mut of_controllers = CONTROLLERS.iter().filter_map(|controller| {
        let line = lines.iter().find(|line| line.has(controller))?;
        (line.path != b"/").then_some(line)
    });
    let has_others = lines.iter().any(|line| !line.controllers.is_empty());
    match of_controllers.next().or(unified) {
        Some(line) => Some(line.path),
        None if has_others => Some(&b"/"[..]),
        None => None,
    }
    .filter(|_| !(is_ending && has_others))
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn the_line_that_names_the_container_is_chosen() {
        let of = |lines: &'static str| choose(lines.as_bytes(), false).map(<[u8]>::to_vec);
        let known = |path: &str| Some(path.as_bytes().to_vec());
        assert_eq!(
            of("0::/system.slice/a.service\n"),
            known("/system.slice/a.service")
        );
        assert_eq!(of("0::/a (deleted)\n"), known("/a"));
        assert_eq!(of("0::/\n"), known("/"));
        assert_eq!(of("0::/../other:1\n"), known("/../other:1"));
        let hybrid = "5:pids:/docker/1\n4:cpu,cpuacct:/\n1:name=systemd:/docker/2\n0::/system.slice/containerd.service\n";
        assert_eq!(of(hybrid), known("/docker/1"));
        assert_eq!(of("4:cpuset:/\n1:name=systemd:/\n0::/a\n"), known("/a"));
        assert_eq!(of("4:cpuset:/b\n"), known("/"));
        assert_eq!(of(""), None);
        assert_eq!(of("garbage\n"), None);
    }

    #[test]
    fn where_a_process_that_ends_was_is_said_by_the_unified_hierarchy_alone() {
        assert_eq!(choose(b"0::/a\n", true), Some(&b"/a"[..]));
        assert_eq!(choose(b"2:memory:/\n0::/a\n", true), None);
    }
}

//! What the path of a control group says: the container and the unit that it is of.

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

    fn parse_all(lines: &'a [u8]) -> impl Iterator<Item = Self> {
        let lines = lines.split(|&byte| byte == b'\n');
        lines.filter_map(Line::parse)
    }

    fn has(&self, controller: &[u8]) -> bool {
        let mut controllers = self.controllers.split(|&byte| byte == b',');
        controllers.any(|has| has == controller)
    }
}

/// The path that says where a process is, from the content of `/proc/PID/cgroup`; `None` if that is not known any more. `is_ending` is whether the process
/// is exiting: in hierarchies of version 1 it is in the root then.
///
/// The unified hierarchy (version 2) says it alone where there are no others, and is the one by which processes are chosen. Else the path of a container
/// says it, that of the unified hierarchy first: with containers in hierarchies of version 1, it has the service that runs them. Then the first path that
/// is not the root.
#[must_use]
pub fn path_of_process(lines: &[u8], is_ending: bool) -> Option<&[u8]> {
    let lines: Vec<Line<'_>> = Line::parse_all(lines).collect();
    let unified = lines.iter().find(|line| line.controllers.is_empty());
    let of_controllers = CONTROLLERS.iter().filter_map(|controller| {
        let line = lines.iter().find(|line| line.has(controller));
        line.filter(|_| !is_ending)
    });
    let mut paths = unified.into_iter().chain(of_controllers);
    let is_container = |line: &&Line<'_>| {
        let path = std::str::from_utf8(line.path);
        path.is_ok_and(|path| container_id(path).is_some())
    };
    let has_others = lines.iter().any(|line| !line.controllers.is_empty());
    if let Some(container) = paths.clone().find(is_container) {
        return Some(container.path);
    }
    if is_ending && has_others {
        return None;
    }
    match paths.find(|line| line.path != b"/").or(unified) {
        Some(line) => Some(line.path),
        None => has_others.then_some(&b"/"[..]),
    }
}

/// The path of a process in the unified hierarchy (version 2), from the content of `/proc/PID/cgroup`.
#[must_use]
pub fn unified_path(lines: &[u8]) -> Option<&[u8]> {
    let mut lines = Line::parse_all(lines);
    let unified = lines.find(|line| line.controllers.is_empty())?;
    Some(unified.path)
}

/// The paths of a process in hierarchies of version 1, from the content of `/proc/PID/cgroup`.
pub fn version_1_paths(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = Line::parse_all(lines).filter(|line| !line.controllers.is_empty());
    lines.map(|line| line.path)
}

/// Digits of an id, as Docker, containerd, CRI-O and Podman make them.
const DIGITS: usize = 64;
/// Part of the names of groups of programs that watch a container from outside (`libpod-conmon-ID.scope`).
const WATCHER: &str = "conmon";

/// The id of the innermost container in the path of a control group: a directory `ID`, `WORD-ID.scope` (systemd's driver) or `…:WORD:ID`.
#[must_use]
pub fn container_id(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(|directory| {
        let name = directory.strip_suffix(".scope").unwrap_or(directory);
        let (before, id) = match name.rfind(['-', ':']) {
            Some(at) => (name.get(..at)?, name.get(at + 1..)?),
            None => ("", name),
        };
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = id.len() == DIGITS && id.bytes().all(digits);
        (is_id && !before.contains(WATCHER)).then_some(id)
    })
}

/// The unit of systemd that a control group is of: the innermost service or scope in its path, with its suffix.
#[must_use]
pub fn unit(path: &str) -> Option<&str> {
    let mut directories = path.rsplit('/');
    directories.find(|name| name.ends_with(".service") || name.ends_with(".scope"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_the_container_is_chosen() {
        let of = |lines: &'static str| path_of_process(lines.as_bytes(), false).map(<[u8]>::to_vec);
        let known = |path: &str| Some(path.as_bytes().to_vec());
        assert_eq!(
            of("0::/system.slice/a.service\n"),
            known("/system.slice/a.service")
        );
        assert_eq!(of("0::/a (deleted)\n"), known("/a"));
        assert_eq!(of("0::/\n"), known("/"));
        assert_eq!(of("0::/../other:1\n"), known("/../other:1"));
        let container = format!("/docker/{}", "0123456789abcdef".repeat(4));
        let lines = |old: &str, unified: &str| {
            let lines = format!("5:pids:{old}\n4:cpu,cpuacct:/\n1:name=systemd:/x\n0::{unified}\n");
            path_of_process(lines.as_bytes(), false).map(<[u8]>::to_vec)
        };
        let service = "/system.slice/containerd.service";
        assert_eq!(lines(&container, service), known(&container));
        assert_eq!(lines("/other", &container), known(&container));
        assert_eq!(lines("/other", service), known(service));
        assert_eq!(lines("/other", "/"), known("/other"));
        assert_eq!(of("4:cpuset:/\n1:name=systemd:/\n0::/a\n"), known("/a"));
        assert_eq!(of("4:cpuset:/b\n"), known("/"));
        assert_eq!(of(""), None);
        assert_eq!(of("garbage\n"), None);
    }

    #[test]
    fn paths_of_both_versions_are_told_apart() {
        let lines = b"4:pids:/system.slice/a:b.service\n1:name=systemd:/x\n0::/y (deleted)\n";
        let old: Vec<&[u8]> = version_1_paths(lines).collect();
        assert_eq!(old, [&b"/system.slice/a:b.service"[..], b"/x"]);
        assert_eq!(unified_path(lines), Some(&b"/y"[..]));
        assert_eq!(version_1_paths(b"0::/y\n").count(), 0);
    }

    #[test]
    fn where_a_process_that_ends_was_is_said_by_the_unified_hierarchy_alone() {
        assert_eq!(path_of_process(b"0::/a\n", true), Some(&b"/a"[..]));
        assert_eq!(path_of_process(b"2:memory:/\n0::/a\n", true), None);
        let container = format!("/docker/{}", "0123456789abcdef".repeat(4));
        let lines = format!("2:memory:/\n0::{container}\n");
        let known = path_of_process(lines.as_bytes(), true);
        assert_eq!(known, Some(container.as_bytes()));
    }

    #[test]
    fn ids_of_the_runtimes() {
        let (id, other) = ("0123456789abcdef".repeat(4), "f".repeat(64));
        for path in [
            format!("/docker/{id}"),
            format!("/docker/{other}/docker/{id}"),
            format!("/docker/{id}/init.scope"),
            format!("/system.slice/docker-{id}.scope"),
            format!("/kubepods/burstable/pod12/{id}"),
            format!("/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{id}.scope"),
            format!("/kubepods.slice/kubepods-pod1_2.slice/crio-{id}.scope"),
            format!("/machine.slice/libpod-{id}.scope/container"),
            format!("/system.slice/kubepods-pod1.slice:cri-containerd:{id}"),
        ] {
            assert_eq!(container_id(&path), Some(&*id), "{path}");
        }
        for path in [
            String::new(),
            "/".to_owned(),
            "/system.slice/cron.service".to_owned(),
            format!("/machine.slice/libpod-conmon-{id}.scope"),
            format!("/docker/{}", &id[1..]),
            format!("/docker/{id}0"),
            format!("/docker/{}", id.to_uppercase()),
            format!("/docker/é{id}"),
        ] {
            assert_eq!(container_id(&path), None, "{path}");
        }
    }

    #[test]
    fn units_of_systemd() {
        assert_eq!(unit("/system.slice/cron.service"), Some("cron.service"));
        let user = "/user.slice/user-0.slice/user@0.service/app.slice/a.scope/inner";
        assert_eq!(unit(user), Some("a.scope"));
        assert_eq!(unit("/docker/1"), None);
        assert_eq!(unit(""), None);
    }
}

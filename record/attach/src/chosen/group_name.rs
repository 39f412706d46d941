//! Names of control groups, containers and units.

use std::fmt;
use std::path::Path;

use usdtrec_format::control_group::container_id;
use usdtrec_format::escape::escape;

use super::hierarchy::ControlGroup;

/// Digits of a container's id that are enough.
const MIN_DIGITS: usize = 4;

/// The name of control groups. Those below them are meant, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupName {
    /// A control group: its path (`/system.slice/cron.service`, also without the first slash or with the mount point), its id, or the name of its
    /// directory.
    Cgroup(String),
    /// A container: the first digits of its id, or of the uid of a Kubernetes pod; the name of one of systemd-nspawn or LXC.
    Container(String),
    /// A unit of systemd; without a suffix, a service.
    Unit(String),
}

/// What a control group that is made later is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterName {
    /// Name of its directory, or its path with a first slash.
    pub text: String,
    /// Whether names that begin with it are meant, too.
    pub is_prefix: bool,
}

impl LaterName {
    pub(super) const fn exactly(text: String) -> Self {
        Self {
            text,
            is_prefix: false,
        }
    }
}

impl GroupName {
    /// Maximum length of a path or name, bytes: programs compare that many.
    pub const MAX_BYTES: usize = 255;

    /// The same with the path below the mount point.
    pub(super) fn below(&self, mount: &Path) -> Self {
        match self {
            Self::Cgroup(path) => {
                let below = Path::new(path).strip_prefix(mount).ok();
                let below = below.and_then(Path::to_str).map(|path| format!("/{path}"));
                let path = below.as_deref().unwrap_or(path).trim_end_matches('/');
                Self::Cgroup(match path.strip_prefix('/') {
                    None if path.contains('/') => format!("/{path}"),
                    _ => path.to_owned(),
                })
            }
            Self::Unit(name) if unit_type(name).is_none() => Self::Unit(format!("{name}.service")),
            _ => self.clone(),
        }
    }

    /// The name, path or id.
    pub(super) fn text(&self) -> &str {
        let (Self::Cgroup(text) | Self::Container(text) | Self::Unit(text)) = self;
        text
    }

    /// Whether it is a path or an id, which one group has.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Self::Cgroup(name) if name.starts_with('/') || name.parse::<u64>().is_ok())
    }

    /// Whether it is that of a group.
    pub(super) fn is(&self, group: &ControlGroup) -> bool {
        match self {
            Self::Cgroup(path) if path.starts_with('/') => *path == group.path,
            Self::Cgroup(id) if id.parse() == Ok(group.id) => true,
            _ => self.is_directory(group.name()),
        }
    }

    /// Whether it is that of the last directory of a group's path.
    pub(super) fn is_directory(&self, directory: &str) -> bool {
        match self {
            Self::Cgroup(name) | Self::Unit(name) => name == directory,
            Self::Container(id) if is_digits(id) => {
                container_id(directory).is_some_and(|known| known.starts_with(id))
                    || pod(directory).is_some_and(|pod| pod.starts_with(&id.replace('_', "-")))
                    || is_named(directory, id)
            }
            Self::Container(name) => is_named(directory, name),
        }
    }

    /// The container's id in the name of a group that this is the name of.
    pub(super) fn container_of<'a>(&self, group: &'a ControlGroup) -> Option<&'a str> {
        let id = container_id(group.name());
        id.filter(|_| matches!(self, Self::Container(_)))
    }

    /// Whether it is a name of a container that most runtimes do not put into paths.
    pub(super) fn is_unknown_to_paths(&self) -> bool {
        matches!(self, Self::Container(name) if !is_digits(name))
    }

    /// What the next group of this name will be known by. A unit or container has its path again; another user may make one of its name.
    pub(super) fn of_later(&self, group: &ControlGroup) -> Option<LaterName> {
        let text = match self {
            Self::Cgroup(id) if id.parse() == Ok(group.id) => return None,
            Self::Cgroup(name) => name,
            Self::Unit(_) | Self::Container(_) => &group.path,
        };
        Some(LaterName::exactly(text.clone()))
    }

    /// A message that there is no group.
    #[must_use]
    pub fn absence(&self) -> String {
        match self {
            Self::Cgroup(_) => format!("no {self}"),
            Self::Container(_) | Self::Unit(_) => format!("no control group of {self}"),
        }
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, name) = match self {
            Self::Cgroup(name) => ("control group", name),
            Self::Container(name) => ("container", name),
            Self::Unit(name) => ("unit", name),
        };
        write!(f, "{word} {}", escape(name))
    }
}

/// The type of a unit, which is its suffix; `None` without one of systemd's (systemd.unit(5)).
pub(super) fn unit_type(name: &str) -> Option<&str> {
    const TYPES: [&str; 11] = [
        "service",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "target",
        "path",
        "timer",
        "slice",
        "scope",
    ];
    let (_, kind) = name.rsplit_once('.')?;
    TYPES.contains(&kind).then_some(kind)
}

fn is_digits(id: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-' | b'_');
    id.len() >= MIN_DIGITS && id.bytes().all(is_digit)
}

/// The uid of a Kubernetes pod: `podUID`, or `kubepods-…-podUID.slice` with underscores (systemd's driver).
fn pod(directory: &str) -> Option<String> {
    let name = directory.strip_suffix(".slice").unwrap_or(directory);
    let uid = match name.strip_prefix("pod") {
        Some(uid) => uid,
        None => name.strip_prefix("kubepods")?.rsplit_once("-pod")?.1,
    };
    Some(uid.replace('_', "-"))
}

/// Whether the directory of a container has its name: `machine-NAME.scope`, `systemd-nspawn@NAME.service`, `lxc.payload.NAME`.
fn is_named(directory: &str, name: &str) -> bool {
    let names = [
        ("machine-", ".scope"),
        ("systemd-nspawn@", ".service"),
        ("lxc.payload.", ""),
    ];
    names.iter().any(|(before, after)| {
        let rest = directory.strip_prefix(before);
        // systemd escapes what a name may have besides letters and digits.
        let found = rest.and_then(|rest| rest.strip_suffix(after));
        found.is_some_and(|found| found == name || found.replace("\\x2d", "-") == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn group(path: &str) -> ControlGroup {
        ControlGroup {
            path: path.to_owned(),
            id: 4711,
        }
    }

    #[test]
    fn containers_are_found_by_what_paths_have() {
        let named = |name: &str, path: &str| {
            let name = GroupName::Container(name.to_owned());
            name.is(&group(path))
        };
        for path in [
            format!("/docker/{ID}"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{ID}.scope"),
        ] {
            assert!(named("0123", &path) && named(ID, &path), "{path}");
            assert!(!named("123", &path) && !named("1234", &path), "{path}");
            assert!(!named("0123", &format!("{path}/inner")), "{path}");
        }
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34cd.slice";
        assert!(named("12ab", pod) && named("12ab-34cd", pod) && named("12ab_34", pod));
        assert!(named("12ab-34cd", "/kubepods/burstable/pod12ab-34cd"));
        assert!(!named("34cd", pod));
        assert!(named("web-1", "/machine.slice/machine-web\\x2d1.scope"));
        assert!(named("web", "/machine.slice/systemd-nspawn@web.service"));
        assert!(named("web", "/lxc.payload.web"));
        assert!(!named("web", "/lxc.monitor.web"));
        assert!(!named("conm", "/machine.slice/libpod-conmon-0123.scope"));
    }

    #[test]
    fn control_groups_have_a_path_an_id_and_a_name() {
        let mount = Path::new("/sys/fs/cgroup");
        let named = |name: &str, path: &str| {
            let name = GroupName::Cgroup(name.to_owned()).below(mount);
            !name.text().is_empty() && name.is(&group(path))
        };
        let path = "/system.slice/cron.service";
        for name in [
            path,
            "system.slice/cron.service",
            "/sys/fs/cgroup/system.slice/cron.service/",
            "cron.service",
            "4711",
        ] {
            assert!(named(name, path), "{name}");
        }
        for name in ["/cron.service", "cron", "system.slice", "471", "/", ""] {
            assert!(!named(name, path), "{name}");
        }
        let unit = |name: &str| {
            GroupName::Unit(name.to_owned())
                .below(mount)
                .is(&group(path))
        };
        assert!(unit("cron") && unit("cron.service") && !unit("cron.slice"));
        let dotted = GroupName::Unit("a.b".to_owned()).below(mount);
        assert_eq!(dotted.text(), "a.b.service");
    }

    #[test]
    fn a_later_group_is_known_by_what_was_asked_for() {
        let path = format!("/docker/{ID}");
        let later = |name: GroupName| name.of_later(&group(&path)).map(|name| name.text);
        assert_eq!(later(GroupName::Cgroup("4711".to_owned())), None);
        assert_eq!(later(GroupName::Cgroup(path.clone())), Some(path.clone()));
        let container = GroupName::Container("0123".to_owned());
        assert_eq!(later(container), Some(path));
    }
}

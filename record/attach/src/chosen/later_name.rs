//! What control groups that are made later are known by.

use super::group_name::{GroupName, LaterName, unit_type};

/// Digits of a container's id by which one is waited for: as many as Docker and Podman print. Fewer are soon those of another one.
const MIN_DIGITS: usize = 12;
/// Digits and hyphens of the uid of a Kubernetes pod.
const UID_BYTES: usize = 36;

/// Types of units that have control groups.
const WITH_GROUPS: [&str; 6] = ["service", "scope", "slice", "socket", "mount", "swap"];

impl GroupName {
    /// What the first group of this name will be known by. Nothing if there will be none, or that cannot be known before.
    pub(super) fn of_first(&self) -> Vec<LaterName> {
        match self {
            Self::Cgroup(path) if path.starts_with('/') => {
                let is_normal = path.split('/').skip(1).all(is_directory_name);
                one_if(is_normal, path)
            }
            // The kernel gives the ids.
            Self::Cgroup(id) if id.parse::<u64>().is_ok() => Vec::new(),
            Self::Cgroup(name) => one_if(is_directory_name(name), name),
            Self::Unit(name) => {
                let has_group = unit_type(name).is_some_and(|kind| WITH_GROUPS.contains(&kind));
                one_if(has_group && is_directory_name(name), name)
            }
            Self::Container(id) => of_container(id),
        }
    }
}

fn one_if(may_be: bool, text: &str) -> Vec<LaterName> {
    let name = may_be.then(|| LaterName::exactly(text.to_owned()));
    name.into_iter().collect()
}

fn is_directory_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}

/// The directories of runtimes for a container's id, or for a pod of Kubernetes.
fn of_container(id: &str) -> Vec<LaterName> {
    let is_digits = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digits && id.len() >= MIN_DIGITS {
        let before = ["", "docker-", "cri-containerd-", "crio-", "libpod-"];
        let name = |before| LaterName {
            text: format!("{before}{id}"),
            is_prefix: true,
        };
        return before.map(name).into();
    }
    if id.len() != UID_BYTES {
        return Vec::new();
    }
    let of_systemd = id.replace('-', "_");
    let classes = ["", "burstable-", "besteffort-"];
    let slices = classes.map(|class| format!("kubepods-{class}pod{of_systemd}.slice"));
    let of_cgroupfs = format!("pod{}", id.replace('_', "-"));
    let names = slices.into_iter().chain([of_cgroupfs]);
    names.map(LaterName::exactly).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_come() {
        let names = |name: GroupName| -> Vec<String> {
            let names = name.of_first().into_iter();
            names
                .map(|name| name.text + if name.is_prefix { "*" } else { "" })
                .collect()
        };
        let cgroup = |text: &str| names(GroupName::Cgroup(text.to_owned()));
        for text in ["/a/b.service", "a"] {
            assert_eq!(cgroup(text), [text]);
        }
        for text in ["4711", "/a/../b", "/a//b", "/./a", "..", "/a/", ""] {
            assert_eq!(cgroup(text), [""; 0], "{text}");
        }
        let unit = |text: &str| names(GroupName::Unit(text.to_owned()));
        assert_eq!(unit("a.b.slice"), ["a.b.slice"]);
        for text in ["a.timer", "a.target", "a/b.service"] {
            assert_eq!(unit(text), [""; 0], "{text}");
        }
        let container = |text: &str| names(GroupName::Container(text.to_owned()));
        assert_eq!(
            container("3f2a9c001122")[..2],
            ["3f2a9c001122*", "docker-3f2a9c001122*"]
        );
        assert_eq!(container("3f2a9c00112"), [""; 0]);
        let uid = "12345678-1234-1234-1234-123456789abc";
        let pods = container(uid);
        assert_eq!(pods.last(), Some(&format!("pod{uid}")));
        assert_eq!(
            pods[1],
            format!("kubepods-burstable-pod{}.slice", uid.replace('-', "_"))
        );
        assert_eq!(container("web"), [""; 0]);
    }
}

//! Whose control group has a name. A user may make groups of any name in a subtree that was delegated to it (cgroups(7)), and a container with a systemd
//! of its own has units of the same names as the host: a name means the groups of the host's system manager, if there are any.

use std::fmt;
use std::os::unix::fs::MetadataExt;

use usdtrec_format::control_group::container_id;
use usdtrec_format::escape::escape;

use super::group_name::GroupName;
use super::hierarchy::{ControlGroup, Hierarchy};

/// Maximum number of groups that are listed.
const MAX_LISTED: usize = 8;

/// A control group whose name is also that of others, or that is not one of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRemark {
    /// There is no group of the name yet.
    Missing(GroupName),
    /// The only group of the name is not one of the system.
    Foreign(GroupName, GroupOwner),
    /// Several groups of the system have the name: all are chosen.
    Several(GroupName, Vec<String>),
    /// Groups of the name that are not those of the system are not chosen.
    NotChosen(GroupName, Vec<GroupOwner>),
}

/// A control group that is not one of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOwner {
    /// Its path.
    pub path: String,
    /// The user whose group it is: the first owner other than root of it or of a group above it.
    pub user: u32,
}

/// The groups that a name means.
pub(super) struct Meant<'a> {
    pub(super) groups: Vec<&'a ControlGroup>,
    pub(super) remark: Option<GroupRemark>,
}

/// Chooses among the groups of a name. A path or an id means that group, whose ever it is.
///
/// # Errors
/// None is of the system, and there are these.
pub(super) fn meant<'a>(
    hierarchy: &Hierarchy,
    name: &GroupName,
    found: Vec<&'a ControlGroup>,
) -> Result<Meant<'a>, Vec<GroupOwner>> {
    if name.is_exact() {
        return Ok(Meant {
            groups: found,
            remark: None,
        });
    }
    let (system, others): (Vec<&ControlGroup>, Vec<&ControlGroup>) = found
        .into_iter()
        .partition(|group| hierarchy.owner(&group.path) == 0 && is_of_host(&group.path));
    let owners = || {
        let owner = |group: &&ControlGroup| GroupOwner {
            path: group.path.clone(),
            user: hierarchy.owner(&group.path),
        };
        others.iter().map(owner).collect::<Vec<_>>()
    };
    let name = || name.clone();
    match (&*system, &*others) {
        ([], [_]) => Ok(Meant {
            remark: owners()
                .pop()
                .map(|owner| GroupRemark::Foreign(name(), owner)),
            groups: others,
        }),
        ([], _) => Err(owners()),
        (_, [_, ..]) => Ok(Meant {
            remark: Some(GroupRemark::NotChosen(name(), owners())),
            groups: system,
        }),
        ([_, _, ..], []) => {
            let paths = system.iter().map(|group| group.path.clone()).collect();
            Ok(Meant {
                remark: Some(GroupRemark::Several(name(), paths)),
                groups: system,
            })
        }
        ([_], []) => Ok(Meant {
            groups: system,
            remark: None,
        }),
    }
}

/// Whether no group above this one is that of a user's manager (`user@UID.service`) or of a container, which have units and containers of their own.
fn is_of_host(path: &str) -> bool {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let is_manager = |name: &str| name.starts_with("user@") && name.ends_with(".service");
    container_id(above).is_none() && !above.split('/').any(is_manager)
}

impl Hierarchy {
    /// The user whose group one is: the first owner other than root of the groups of its path; 0 if all of them are root's.
    fn owner(&self, path: &str) -> u32 {
        let mut directory = self.mount.clone();
        let owners = path.split('/').filter(|name| !name.is_empty()).map(|name| {
            directory.push(name);
            std::fs::metadata(&directory).map_or(0, |found| found.uid())
        });
        owners.into_iter().find(|owner| *owner != 0).unwrap_or(0)
    }
}

impl fmt::Display for GroupOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of user {}", escape(&self.path), self.user)
    }
}

impl fmt::Display for GroupRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{} now: waiting", name.absence()),
            Self::Foreign(name, owner) => {
                write!(f, "{name}: the system has none; recording {owner}")
            }
            Self::Several(name, paths) => {
                let paths = listed(paths.iter().map(|path| escape(path).into_owned()));
                write!(f, "{name}: recording all of {paths}")
            }
            Self::NotChosen(name, others) => {
                let others = listed(others.iter().map(GroupOwner::to_string));
                write!(f, "{name}: recording that of the system, not {others}")
            }
        }
    }
}

/// The first of some texts, and the number of the others.
pub(super) fn listed(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    let mut texts: Vec<String> = texts.take(MAX_LISTED).collect();
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_users_and_containers_are_not_those_of_the_host() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            "/system.slice/pg.service".to_owned(),
            "/a/system.slice/pg.service".to_owned(),
            "/user.slice/user-0.slice/user@0.service".to_owned(),
            format!("/system.slice/docker-{id}.scope"),
        ] {
            assert!(is_of_host(&path), "{path}");
        }
        for path in [
            "/user.slice/user-0.slice/user@0.service/app.slice/pg.service".to_owned(),
            format!("/system.slice/docker-{id}.scope/system.slice/pg.service"),
            format!("/docker/{id}/docker/{id}"),
        ] {
            assert!(!is_of_host(&path), "{path}");
        }
    }
}

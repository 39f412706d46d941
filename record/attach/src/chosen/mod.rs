//! Choosing the processes whose hits are recorded, by their control group or executable.
//!
//! Control groups are those of version 2. Programs compare the ids of the group of a hit and of those above it with a
//! map (`engine/bpf/processes/groups.rs`). Runtimes are not asked: containers and units are found by the names of directories.
//! A group may be missing yet: what it will be called is known before.

mod group_name;
mod hierarchy;
mod later_name;
mod owner;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_buildid_cache::file_id;
use usdtrec_buildid_cache::served::{Handle, Patience, Reader};
use usdtrec_format::control_group::{container_id, unified_path, unit, version_1_paths};
use usdtrec_kernel::host::process::{Process, live_directory};

pub use self::group_name::GroupName;
pub use self::group_name::LaterName;
pub use self::hierarchy::{ControlGroup, Hierarchy};
pub use self::owner::{GroupOwner, GroupRemark};
use self::owner::{Meant, listed, meant};

/// Which processes' hits are recorded: those that are in one of the control groups, if there are any, and execute one of the files, if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessChoice {
    /// Control groups.
    pub groups: Vec<GroupName>,
    /// Paths of executables.
    pub executables: Vec<PathBuf>,
    /// Whether a control group may be missing yet.
    pub may_wait: bool,
}

/// The chosen control groups.
#[derive(Debug, Default)]
pub struct ChosenGroups {
    /// The groups that exist, without those below them.
    pub present: Vec<ControlGroup>,
    /// What those are known by that are made later.
    pub later: Vec<LaterName>,
    /// What is to be said about names.
    remarks: Vec<GroupRemark>,
}

/// A choice cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// There is no control group of this name.
    #[error("{}", of_no_group(.name, .there))]
    NoGroup {
        /// The name.
        name: GroupName,
        /// The containers, units or control groups that processes are in.
        there: Vec<String>,
    },
    /// A container or unit is in hierarchies of version 1.
    #[error("{0} is in control groups of version 1, expected version 2")]
    OldGroup(GroupName),
    /// The beginning of an id is that of several containers.
    #[error("{name} is ambiguous: {}", .containers.join(", "))]
    Ambiguous {
        /// The name.
        name: GroupName,
        /// Ids of the containers.
        containers: Vec<String>,
    },
    /// A name is that of several groups, none of which is of the system.
    #[error(
        "{name} is ambiguous: expected the path of one of {}",
        listed(.groups.iter().map(GroupOwner::to_string))
    )]
    OfSeveral {
        /// The name.
        name: GroupName,
        /// The groups.
        groups: Vec<GroupOwner>,
    },
    /// A container's id is not given.
    #[error(
        "{0}: expected at least 4 hexadecimal digits of the container's id, or of the uid of a Kubernetes pod; other names of containers are known to \
         their runtime only, except for those of systemd-nspawn and LXC"
    )]
    NotInPath(GroupName),
    /// There are no control groups of version 2.
    #[error("there are no control groups of version 2 here{}", only_old(*.has_old))]
    NoHierarchy {
        /// Whether there are some of version 1.
        has_old: bool,
    },
    /// Everything is in the root.
    #[error("the root control group has all processes")]
    Root,
    /// A path is longer than programs compare.
    #[error("{0}: expected a path of at most {max} bytes", max = GroupName::MAX_BYTES)]
    TooLong(GroupName),
    /// A group is nested too deeply.
    #[error("{path}: expected a control group at most {max} directories deep", max = ControlGroup::MAX_DEPTH)]
    TooDeep {
        /// Path of the group.
        path: String,
    },
    /// An executable cannot be opened.
    #[error("{}", usdtrec_format::escape::shown(.path))]
    Executable {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

const fn only_old(has_old: bool) -> &'static str {
    match has_old {
        true => ", only of version 1",
        false => "",
    }
}

fn of_no_group(name: &GroupName, there: &[String]) -> String {
    match there {
        [] => format!("there is no {name}"),
        _ => format!("there is no {name}; there are: {}", there.join(", ")),
    }
}

impl ProcessChoice {
    /// Whether all processes are recorded.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.groups.is_empty() && self.executables.is_empty()
    }

    /// The chosen processes that run now.
    ///
    /// # Errors
    /// [`ChoiceError`]: something that was named does not exist.
    pub fn running(&self) -> Result<HashSet<u32>, ChoiceError> {
        let groups = self.groups()?;
        let executables = self.executables.iter().map(|path| {
            let found = Handle::of_path(path, Reader::of_unknown(Patience::Usual));
            let found = found.map_err(|source| ChoiceError::Executable {
                path: path.clone(),
                source,
            })?;
            Ok(found.stat().id)
        });
        let executables = executables.collect::<Result<Vec<FileId>, ChoiceError>>()?;
        let is_chosen = |pid: i32| {
            let in_group = || {
                let path = hierarchy::path_of_process(pid);
                path.is_some_and(|path| groups.present.iter().any(|group| group.has(&path)))
            };
            let runs = || {
                let path = live_directory(pid).join("exe");
                let reader = Reader::of_process(pid, Patience::Usual);
                let file = file_id(&path, reader);
                file.is_some_and(|file| executables.contains(&file))
            };
            (self.groups.is_empty() || in_group()) && (executables.is_empty() || runs())
        };
        let all = Process::all().into_iter().flatten();
        let chosen = all.filter(|process| is_chosen(process.pid));
        Ok(chosen
            .filter_map(|process| process.pid.try_into().ok())
            .collect())
    }

    /// What a user does not expect of the control groups of these names: those that are missing yet, and those that are not of the system.
    ///
    /// # Errors
    /// [`ChoiceError`]: one that was named cannot be waited for.
    pub fn group_remarks(&self) -> Result<Vec<GroupRemark>, ChoiceError> {
        Ok(self.groups()?.remarks)
    }

    /// The chosen control groups.
    ///
    /// # Errors
    /// [`ChoiceError`]: one that was named does not exist, and cannot be waited for.
    pub fn groups(&self) -> Result<ChosenGroups, ChoiceError> {
        let mut chosen = ChosenGroups::default();
        if self.groups.is_empty() {
            return Ok(chosen);
        }
        let hierarchy = hierarchy()?;
        let all = hierarchy.groups();
        for given in &self.groups {
            let name = given.below(&hierarchy.mount);
            check(&name)?;
            let found: Vec<&ControlGroup> = all.iter().filter(|group| name.is(group)).collect();
            if found.is_empty() {
                let may_come = self.may_wait && !hierarchy.is_path_outside(given.text());
                chosen.later.extend(expected(&name, may_come)?);
                chosen.remarks.push(GroupRemark::Missing(name));
                continue;
            }
            let Meant {
                groups: found,
                remark,
            } = meant(&hierarchy, &name, found).map_err(|groups| ChoiceError::OfSeveral {
                name: name.clone(),
                groups,
            })?;
            chosen.remarks.extend(remark);
            check_found(&name, &found)?;
            let later = found.iter().filter_map(|group| name.of_later(group));
            chosen.later.extend(later);
            chosen.present.extend(found.into_iter().cloned());
        }
        Ok(chosen)
    }
}

/// The control groups of this host.
///
/// # Errors
/// [`ChoiceError::NoHierarchy`].
pub fn hierarchy() -> Result<Hierarchy, ChoiceError> {
    Hierarchy::find().ok_or_else(|| ChoiceError::NoHierarchy {
        has_old: Hierarchy::has_version_1(),
    })
}

/// What the first group of a name will be known by.
///
/// # Errors
/// [`ChoiceError`]: there will be none.
fn expected(name: &GroupName, may_come: bool) -> Result<Vec<LaterName>, ChoiceError> {
    let names = match may_come {
        true => name.of_first(),
        false => Vec::new(),
    };
    match missing(name) {
        ChoiceError::NoGroup { .. } if !names.is_empty() => Ok(names),
        error => Err(error),
    }
}

/// Whether a name is that of one container, and programs find the groups.
fn check_found(name: &GroupName, found: &[&ControlGroup]) -> Result<(), ChoiceError> {
    let containers = found.iter().filter_map(|group| name.container_of(group));
    let containers: BTreeSet<&str> = containers.collect();
    if containers.len() > 1 {
        return Err(ChoiceError::Ambiguous {
            name: name.clone(),
            containers: containers.into_iter().map(str::to_owned).collect(),
        });
    }
    let mut found = found.iter();
    match found.find(|group| group.depth() > ControlGroup::MAX_DEPTH) {
        Some(deep) => Err(ChoiceError::TooDeep {
            path: usdtrec_format::escape::escape(&deep.path).into_owned(),
        }),
        None => Ok(()),
    }
}

/// Whether a name can be that of a group.
fn check(name: &GroupName) -> Result<(), ChoiceError> {
    match name {
        GroupName::Cgroup(path) if path.is_empty() => Err(ChoiceError::Root),
        GroupName::Container(id) if id.is_empty() => Err(ChoiceError::NotInPath(name.clone())),
        _ if name.text().len() > GroupName::MAX_BYTES => Err(ChoiceError::TooLong(name.clone())),
        _ => Ok(()),
    }
}

/// Why a name is that of no group.
fn missing(name: &GroupName) -> ChoiceError {
    /// Maximum number of names that are listed.
    const MAX_LISTED: usize = 12;
    let (mut paths, mut old) = (BTreeSet::new(), BTreeSet::new());
    for process in Process::all().into_iter().flatten() {
        let lines = fs::read(live_directory(process.pid).join("cgroup")).unwrap_or_default();
        let text = |path| String::from_utf8_lossy(path).into_owned();
        paths.extend(unified_path(&lines).map(text));
        old.extend(version_1_paths(&lines).map(text));
    }
    old.retain(|path| !paths.contains(path));
    paths.remove("/");
    let mut directories = old.iter().flat_map(|path| path.split('/'));
    let is_old_path = matches!(name, GroupName::Cgroup(path) if old.contains(path));
    if is_old_path || directories.any(|directory| name.is_directory(directory)) {
        return ChoiceError::OldGroup(name.clone());
    }
    if name.is_unknown_to_paths() {
        return ChoiceError::NotInPath(name.clone());
    }
    let there = paths.iter().filter_map(|path| match name {
        GroupName::Cgroup(_) => Some(&**path),
        GroupName::Container(_) => container_id(path),
        GroupName::Unit(_) => unit(path),
    });
    let there: BTreeSet<&str> = there.collect();
    let more = there.len().saturating_sub(MAX_LISTED);
    let shown = there.into_iter().take(MAX_LISTED);
    let mut there: Vec<String> = shown
        .map(|name| usdtrec_format::escape::escape(name).into_owned())
        .collect();
    if more > 0 {
        there.push(format!("and {more} more"));
    }
    ChoiceError::NoGroup {
        name: name.clone(),
        there,
    }
}

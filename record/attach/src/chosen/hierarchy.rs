//! The directories of control groups, version 2.

use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use usdtrec_format::control_group::unified_path;
use usdtrec_kernel::host::process::live_directory;

/// Maximum number of directories that are read.
const MAX_GROUPS: usize = 1 << 16;

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its path below the mount point, with a slash first.
    pub path: String,
    /// The kernel's id: the number of the directory's inode (`kernfs_node.id`, on 64-bit machines).
    pub id: u64,
}

impl ControlGroup {
    /// Number of directories of the path up to which programs find a group above that of a hit.
    pub const MAX_DEPTH: usize = 16;

    /// Name of its directory.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Number of directories of its path.
    pub(super) fn depth(&self) -> usize {
        self.path.matches('/').count()
    }

    /// Whether a path is that of this group or of one below it.
    pub(super) fn has(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&*self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Where the control groups are mounted.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    pub(super) mount: PathBuf,
}

impl Hierarchy {
    /// `None` if there are no control groups of version 2.
    pub fn find() -> Option<Self> {
        mount_of("cgroup2").map(|mount| Self { mount })
    }

    /// Whether there are control groups of version 1.
    pub(super) fn has_version_1() -> bool {
        mount_of("cgroup").is_some()
    }

    /// Whether there is a file at a path that is not in the hierarchy.
    pub(super) fn is_path_outside(&self, path: &str) -> bool {
        let path = Path::new(path);
        path.is_absolute() && !path.starts_with(&self.mount) && path.exists()
    }

    /// All groups but the root.
    pub fn groups(&self) -> Vec<ControlGroup> {
        let mut groups = below(&self.mount, "");
        let mut next = 0;
        while let Some(group) = groups.get(next).filter(|_| groups.len() < MAX_GROUPS) {
            let inner = below(&self.mount, &group.path);
            groups.extend(inner);
            next += 1;
        }
        groups
    }
}

/// The first mount point of a file system.
fn mount_of(kind: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (directory, of_kind) = (words.next()?, words.next()?);
        (of_kind == kind).then_some(directory)
    });
    mount.map(PathBuf::from)
}

/// The groups in a group. One that is removed meanwhile has none.
fn below(mount: &Path, path: &str) -> Vec<ControlGroup> {
    let directory = mount.join(path.trim_start_matches('/'));
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories
        .map(|entry| ControlGroup {
            path: format!("{path}/{}", entry.file_name().to_string_lossy()),
            id: entry.ino(),
        })
        .collect()
}

/// The path of a process in the hierarchy of version 2.
pub(super) fn path_of_process(pid: i32) -> Option<String> {
    let lines = fs::read(live_directory(pid).join("cgroup")).ok()?;
    unified_path(&lines).map(|path| String::from_utf8_lossy(path).into_owned())
}

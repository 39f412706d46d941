//! The paths of control groups by their ids, for keys.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use usdtrec_format::control_group::{container_id, unit};

use crate::aggregation::{AggregateKey, NoGroupName};
use crate::chosen::Hierarchy;

/// The paths of the control groups that were there when they were looked for.
#[derive(Debug, Default)]
pub(super) struct GroupPaths {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Paths by the kernel's ids.
    paths: HashMap<u64, Box<str>>,
    /// Ids that were not there when they were looked for after their hits: they do not come back.
    removed: HashSet<u64>,
    /// Whether the directories were read since the last reading of what was counted began.
    is_new: bool,
}

impl GroupPaths {
    /// Reads what is there, so that groups that are removed while hits are counted are known.
    pub(super) fn new() -> Self {
        let paths = Self::default();
        paths.lock().read();
        paths
    }

    /// Begins a reading of what was counted: the directories are read again for the first group that is not known.
    pub(super) fn begin(&self) {
        self.lock().is_new = false;
    }

    /// The container or unit of the group with this id.
    pub(super) fn name(&self, id: u64, key: &AggregateKey) -> Result<String, NoGroupName> {
        /// `kernfs_node.id` of the root.
        const ROOT: u64 = 1;
        if id == ROOT {
            return Err(NoGroupName::None);
        }
        let mut known = self.lock();
        if !known.paths.contains_key(&id) && !known.is_new && !known.removed.contains(&id) {
            known.read();
            if !known.paths.contains_key(&id) {
                known.removed.insert(id);
            }
        }
        let path = known.paths.get(&id).ok_or(NoGroupName::Removed)?;
        let name = match key {
            AggregateKey::Unit => unit(path),
            _ => container_id(path),
        };
        name.map(str::to_owned).ok_or(NoGroupName::None)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn read(&mut self) {
        let groups = Hierarchy::find().map(|hierarchy| hierarchy.groups());
        let groups = groups.into_iter().flatten();
        self.paths
            .extend(groups.map(|group| (group.id, group.path.into())));
        self.is_new = true;
    }
}

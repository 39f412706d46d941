//! The maps of programs that count hits by group: the groups, their numbers, and slots in which programs make keys.
//!
//! All of their memory is allocated at once: no group is refused for lack of memory later. It does not grow with the number of possible CPUs.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use usdtrec_format::control_group::{container_id, unit};
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::sys::{self, MapKind, MapShape};
use usdtrec_kernel::host::cpus;

use super::durations::{self, DurationBuckets};
use super::group_numbers::GroupNumbers;
use super::grouping::Grouping;
use super::stack_layout::StackLayout;
use super::stack_map::StackMap;
use crate::aggregation::{AggregateKey, BucketCount, NoGroupName};
use crate::chosen::Hierarchy;

/// Maximum number of groups, and maximum size of all maps but the slots, bytes.
const MAX_GROUPS: usize = 65_536;
const MAX_BYTES: usize = 60 << 20;
/// Maximum size of the numbers, bytes.
const MAX_NUMBER_BYTES: usize = 36 << 20;
/// The part of both that open spans take, where spans are aggregated.
pub(in crate::engine::bpf) const MAX_SPAN_BYTES: usize = 10 << 20;
/// The same if there are no keys, so that a group is an event.
const MAX_EVENT_BYTES: usize = 8 << 20;
/// Maximum number of groups if there are no keys.
const MAX_EVENTS: usize = 4096;
/// What an element takes besides its key and value, with its share of the buckets, bytes.
const ELEMENT: usize = 80;

/// Offset in an element of the place of the group among the numbers, after the count of its hits.
pub(super) const ELEMENT_NUMBER: i16 = 8;

/// The maps.
#[derive(Debug)]
pub(in crate::engine::bpf) struct GroupMaps {
    groups: OwnedFd,
    slots: OwnedFd,
    /// `None` if no argument is measured.
    pub(super) numbers: Option<GroupNumbers>,
    /// `None` if no key is the stack.
    pub(super) stacks: Option<StackMap>,
    /// `None` if no spans are aggregated.
    durations: Option<DurationBuckets>,
    /// `None` if no key is about control groups.
    pub(super) paths: Option<GroupPaths>,
    shape: MapShape,
    /// How hits are grouped.
    pub grouping: Grouping,
}

/// A group, as it is in the map.
pub(in crate::engine::bpf) struct GroupElement<'a> {
    pub key: &'a [u8],
    pub count: u64,
    /// Its place among the numbers; `None` if no argument is measured.
    pub number: Option<u64>,
}

impl GroupMaps {
    /// Creates them.
    ///
    /// # Errors
    /// The error of bpf(2): `E2BIG` if the kernel has no keys of this size.
    pub(in crate::engine::bpf) fn new(grouping: Grouping) -> io::Result<Self> {
        let layout = &grouping.numbers;
        let has_numbers = !layout.is_empty();
        let value_size = if has_numbers { 16 } else { 8 };
        let numbers = has_numbers
            .then(|| GroupNumbers::new(layout, measured_groups(&grouping)))
            .transpose()?;
        let stacks = grouping.stacks.map_or(0, StackLayout::map_bytes);
        let left = MAX_BYTES - stacks - span_bytes(&grouping);
        let left = left - numbers.as_ref().map_or(0, GroupNumbers::bytes);
        let element = grouping.bytes as usize + value_size + ELEMENT;
        // The kernel adds an element for each possible CPU.
        let cpus = cpus::possible().map_or(1, |possible| possible.len());
        let groups = (left / element).saturating_sub(cpus);
        let most = match grouping.aggregation.by.is_empty() {
            true => MAX_EVENTS,
            false => MAX_GROUPS,
        };
        let shape = MapShape {
            key_size: grouping.bytes,
            value_size: value_size as u32,
            entries: groups.clamp(1, most) as u32,
        };
        let slots = grouping.rows * grouping.slots_of_row();
        let durations = grouping.duration_place().map(|_| DurationBuckets::new());
        Ok(Self {
            durations: durations.transpose()?,
            groups: sys::create_map(MapKind::Hash, shape)?,
            slots: sys::create_array(grouping.slot_bytes(), slots)?,
            numbers,
            stacks: grouping.stacks.map(StackMap::new).transpose()?,
            paths: grouping.aggregation.has_cgroup().then(GroupPaths::new),
            shape,
            grouping,
        })
    }

    /// Passes all groups to `take`. Those that are added meanwhile may be missing.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(in crate::engine::bpf) fn read(
        &self,
        mut take: impl FnMut(GroupElement<'_>),
    ) -> io::Result<()> {
        if let Some(paths) = &self.paths {
            paths.begin();
        }
        sys::read_map(self.groups.as_fd(), self.shape, |key, value| {
            let mut words = value.chunks_exact(8).map_while(<[u8]>::first_chunk);
            let mut word = || words.next().map(|word| u64::from_ne_bytes(*word));
            take(GroupElement {
                key,
                count: word().unwrap_or(0),
                number: word(),
            });
        })
    }

    /// Passes the counts of the buckets of durations to `take`, with the places of their groups among the numbers. Those of all spans that
    /// [`read`](Self::read) has counted before are there.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(in crate::engine::bpf) fn read_durations(
        &self,
        take: impl FnMut(u64, BucketCount),
    ) -> io::Result<()> {
        let durations = self.durations.as_ref();
        durations.map_or(Ok(()), |durations| durations.read(take))
    }

    /// The maps, for programs.
    pub(in crate::engine::bpf) fn descriptors(&self) -> HashMap<Map, BorrowedFd<'_>> {
        let all = [
            (Map::HitGroups, Some(self.groups.as_fd())),
            (Map::KeySlots, Some(self.slots.as_fd())),
            (Map::GroupNumbers, self.numbers.as_ref().map(AsFd::as_fd)),
            (Map::Stacks, self.stacks.as_ref().map(AsFd::as_fd)),
            (
                Map::DurationBuckets,
                self.durations.as_ref().map(AsFd::as_fd),
            ),
        ];
        let all = all.into_iter();
        all.filter_map(|(map, there)| Some((map, there?))).collect()
    }
}

/// Size of what open spans and the buckets of durations take, bytes.
fn span_bytes(grouping: &Grouping) -> usize {
    match grouping.duration_place() {
        Some(_) => MAX_SPAN_BYTES + durations::BYTES,
        None => 0,
    }
}

/// Number of groups that have room for numbers.
fn measured_groups(grouping: &Grouping) -> u32 {
    let bytes = match grouping.aggregation.by.is_empty() {
        true => MAX_EVENT_BYTES,
        false => MAX_NUMBER_BYTES - span_bytes(grouping),
    };
    let each = grouping.numbers.bytes() as usize;
    (bytes / each.max(8)).clamp(1, MAX_GROUPS) as u32
}

/// Maximum number of paths of control groups that are kept, and of ids of those that were removed: then the next reading begins anew.
const MAX_PATHS: usize = 1 << 17;

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
            if known.removed.len() >= MAX_PATHS {
                known.removed.clear();
            }
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
        if self.paths.len() >= MAX_PATHS {
            self.paths.clear();
        }
        self.paths
            .extend(groups.map(|group| (group.id, group.path.into())));
        self.is_new = true;
    }
}

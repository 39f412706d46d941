//! The maps of programs that count hits by group: the groups, and slots in which programs make keys.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::super::sys::{self, MapKind, MapShape};
use super::group_hit::{KEY, SLOTS};
use super::grouping::Grouping;
use crate::host::cpus;

/// Maximum number of groups, and maximum size of their map, bytes.
const MAX_GROUPS: usize = 65_536;
const MAX_BYTES: usize = 64 << 20;
/// What an element takes besides its key and value, with its share of the buckets, bytes.
const ELEMENT: usize = 80;

/// The maps. The kernel allocates all of their memory at once: no group is refused for lack of memory later.
#[derive(Debug)]
pub(in crate::engine::bpf) struct GroupMaps {
    groups: OwnedFd,
    slots: OwnedFd,
    shape: MapShape,
    /// How hits are grouped.
    pub(in crate::engine::bpf) grouping: Grouping,
}

/// A group, as it is in the map.
pub(in crate::engine::bpf) struct GroupElement<'a> {
    pub(in crate::engine::bpf) key: &'a [u8],
    pub(in crate::engine::bpf) count: u64,
}

impl GroupMaps {
    /// Creates them.
    ///
    /// # Errors
    /// The error of bpf(2): `E2BIG` if the kernel has no keys of this size.
    pub(in crate::engine::bpf) fn new(grouping: Grouping) -> io::Result<Self> {
        let element = grouping.bytes as usize + ELEMENT;
        let shape = MapShape {
            key_size: grouping.bytes,
            value_size: 8,
            entries: (MAX_BYTES / element).min(MAX_GROUPS) as u32,
        };
        let last = cpus::possible().unwrap_or_default().last().copied();
        let slots = MapShape {
            key_size: 4,
            value_size: grouping.bytes + KEY as u32,
            entries: (last.unwrap_or(0) + 1) * SLOTS,
        };
        Ok(Self {
            groups: sys::create_map(MapKind::Hash, shape)?,
            slots: sys::create_map(MapKind::Array, slots)?,
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
        sys::read_map(self.groups.as_fd(), self.shape, |key, value| {
            let count = value
                .first_chunk()
                .map_or(0, |word| u64::from_ne_bytes(*word));
            take(GroupElement { key, count });
        })
    }

    /// The maps, for programs.
    pub(in crate::engine::bpf) fn descriptors(&self) -> GroupDescriptors<'_> {
        GroupDescriptors {
            groups: self.groups.as_fd(),
            slots: self.slots.as_fd(),
        }
    }
}

/// The maps, for programs.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct GroupDescriptors<'a> {
    pub(in crate::engine::bpf) groups: BorrowedFd<'a>,
    pub(in crate::engine::bpf) slots: BorrowedFd<'a>,
}

impl GroupDescriptors<'_> {
    /// Duplicates.
    ///
    /// # Errors
    /// The error of `dup(2)`.
    pub(in crate::engine::bpf) fn share(self) -> io::Result<SharedGroups> {
        Ok(SharedGroups {
            groups: self.groups.try_clone_to_owned()?,
            slots: self.slots.try_clone_to_owned()?,
        })
    }
}

/// Duplicates of the descriptors of the maps, for a thread that attaches further probes.
#[derive(Debug)]
pub(in crate::engine::bpf) struct SharedGroups {
    groups: OwnedFd,
    slots: OwnedFd,
}

impl SharedGroups {
    /// The maps, for programs.
    pub(in crate::engine::bpf) fn descriptors(&self) -> GroupDescriptors<'_> {
        GroupDescriptors {
            groups: self.groups.as_fd(),
            slots: self.slots.as_fd(),
        }
    }
}

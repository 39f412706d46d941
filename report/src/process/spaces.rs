//! Address spaces over time: what a process has mapped where.

use std::ops::Range;

use foldhash::HashMap;

use super::cover::Cover;
use super::log::FileRange;
use super::{DsoId, Mapping};

/// How many processes up a mapping may be inherited through; a bound against cycles in damaged files.
const GENERATIONS: usize = 64;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    /// Of each process, in the order of time.
    by_pid: HashMap<i32, Vec<Space>>,
}

/// What a process has mapped from one fork or execve to the next.
#[derive(Debug)]
struct Space {
    from: u64,
    /// The process whose mappings at `from` it began with.
    parent: Option<i32>,
    /// In the order of time: a later one hides what it covers of an earlier one.
    maps: Vec<Mapped>,
    cover: Cover,
}

#[derive(Debug)]
struct Mapped {
    time: u64,
    addresses: Range<u64>,
    /// File offset of the first address.
    offset: u64,
    dso: DsoId,
}

impl AsRef<Range<u64>> for Mapped {
    fn as_ref(&self) -> &Range<u64> {
        &self.addresses
    }
}

impl Spaces {
    /// Begins a new address space, with the mappings of `parent` if there is one.
    pub(super) fn begin(&mut self, pid: i32, time: u64, parent: Option<i32>) {
        self.by_pid.entry(pid).or_default().push(Space {
            from: time,
            parent,
            maps: Vec::new(),
            cover: Cover::default(),
        });
    }

    /// Adds a mapping to the newest address space of a process.
    pub(super) fn map(&mut self, pid: i32, time: u64, range: FileRange, dso: DsoId) {
        let spaces = self.by_pid.entry(pid).or_default();
        if spaces.is_empty() {
            spaces.push(Space {
                from: 0,
                parent: None,
                maps: Vec::new(),
                cover: Cover::default(),
            });
        }
        if let Some(space) = spaces.last_mut() {
            space.maps.push(Mapped {
                time,
                addresses: range.start..range.end,
                offset: range.offset,
                dso,
            });
            space.cover.grown(&space.maps);
        }
    }

    /// What is mapped at an address at a time.
    pub(super) fn find(&self, pid: i32, address: u64, time: u64) -> Option<Mapping> {
        let (mut pid, mut time) = (pid, time);
        for _ in 0..GENERATIONS {
            let spaces = self.by_pid.get(&pid)?;
            let begun = spaces.partition_point(|space| space.from <= time);
            let space = spaces.get(begun.checked_sub(1)?)?;
            if let Some(found) = space.find(address, time) {
                return Some(found);
            }
            pid = space.parent?;
            // Of the parent, what it had when the child began; its own exec at that very moment is later.
            time = space.from;
        }
        None
    }

    /// The first time after `time` at which the mappings of a process change; `u64::MAX` if they do not.
    pub(super) fn stable_until(&self, pid: i32, time: u64) -> u64 {
        let Some(spaces) = self.by_pid.get(&pid) else {
            return u64::MAX;
        };
        let begun = spaces.partition_point(|space| space.from <= time);
        let next_space = spaces.get(begun).map_or(u64::MAX, |space| space.from);
        let maps = begun
            .checked_sub(1)
            .and_then(|at| spaces.get(at))
            .map_or(&[][..], |space| &space.maps);
        let next = maps.partition_point(|map| map.time <= time);
        maps.get(next)
            .map_or(next_space, |map| map.time.min(next_space))
    }
}

impl Space {
    fn find(&self, address: u64, time: u64) -> Option<Mapping> {
        let known = self.maps.partition_point(|map| map.time <= time);
        let found = self.cover.latest(&self.maps, known, address)?;
        let map = self.maps.get(found)?;
        Some(Mapping {
            start: map.addresses.start,
            offset: map.offset,
            dso: map.dso,
        })
    }
}

//! Address spaces over time: what a process has mapped where.

use std::ops::Range;

use foldhash::{HashMap, HashSet};

use crate::process::cover::Cover;
use crate::process::index::{Index, Numbered};
use crate::process::log::{Placed, Placing};
use crate::process::unaligned::PackedU64;
use crate::process::{DsoId, Mapping};

/// Maximum number of ancestors from which a process may have inherited a mapping; a bound against cycles in damaged files.
const GENERATIONS: usize = 64;

/// Mappings of an address space up to which all are kept of a process that lives, and most that are.
const MAX_LIVING_MAPPINGS: usize = 1 << 12;
const MAX_MAPPINGS: usize = 1 << 16;

/// Changes of a process's address spaces up to which they are looked through one by one.
const ONE_BY_ONE: usize = 128;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// Of a whole trace, what happened to the address spaces of each process, by process and in the order of time; but for processes
    /// with many changes.
    settled: Vec<Placing>,
    index: Index,
    /// What is mapped in those.
    parts: Vec<FilePart>,
    /// Of each process of a stream, and of those with many changes, in the order of time.
    by_pid: HashMap<i32, Vec<Space>>,
}

/// A part of a file that is mapped somewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePart {
    pub(crate) len: u64,
    /// File offset of the first byte.
    pub(crate) offset: u64,
    pub(crate) dso: DsoId,
}

impl Numbered for Placing {
    fn number(&self) -> i32 {
        self.pid
    }
}

/// What a process has mapped from one fork or execve to the next.
#[derive(Debug, Default)]
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

impl Mapped {
    const fn mapping(&self) -> Mapping {
        Mapping {
            start: self.addresses.start,
            offset: self.offset,
            dso: self.dso,
        }
    }
}

impl AsRef<Range<u64>> for Mapped {
    fn as_ref(&self) -> &Range<u64> {
        &self.addresses
    }
}

impl Spaces {
    /// The address spaces of a whole trace; `parts` are those that its mappings name.
    pub(crate) fn settle(mut placings: Vec<Placing>, parts: Vec<FilePart>) -> Self {
        // Stable: of changes at the same time, in particular at 0, the file's order decides.
        placings.sort_by_key(|placing| placing.time);
        placings.sort_by_key(|placing| placing.pid);
        let mut spaces = Self::default();
        for many in placings.chunk_by(|a, b| a.pid == b.pid) {
            if many.len() > ONE_BY_ONE {
                for placing in many {
                    let region = placing.change.region();
                    let part = region.and_then(|region| parts.get(region as usize));
                    spaces.place(placing, part);
                }
            }
        }
        if !spaces.by_pid.is_empty() {
            placings.retain(|placing| !spaces.by_pid.contains_key(&placing.pid));
        }
        placings.shrink_to_fit();
        spaces.index = Index::new(&placings);
        spaces.settled = placings;
        spaces.parts = parts;
        spaces
    }

    /// Takes a change that is not earlier than those of its process before; a part of a file that is mapped is given.
    pub(crate) fn place(&mut self, placing: &Placing, part: Option<&FilePart>) {
        let (pid, time) = (placing.pid, placing.time.into());
        match (placing.change, part) {
            (Placed::Empty, _) => self.begin(pid, time, None),
            (Placed::Inherited(parent), _) => self.begin(pid, time, Some(parent)),
            (Placed::Mapped { start, .. }, Some(part)) => self.map(pid, time, start.into(), part),
            (Placed::Mapped { .. }, None) => {}
        }
    }

    fn settled(&self, pid: i32) -> &[Placing] {
        let places = self.index.range(&self.settled, pid);
        self.settled.get(places).unwrap_or_default()
    }

    /// The same of a settled process; `here` looks at a mapping, the last one first.
    fn look_settled<T>(
        &self,
        pid: i32,
        time: u64,
        here: impl Fn(u64, &FilePart) -> Option<T>,
    ) -> Found<T> {
        let time = PackedU64::from(time);
        let placings = self.settled(pid);
        let known = placings.partition_point(|placing| placing.time <= time);
        for placing in placings.iter().take(known).rev() {
            match placing.change {
                Placed::Empty => return Found::Nothing,
                Placed::Inherited(parent) => {
                    return Found::Inherited {
                        parent,
                        time: placing.time.into(),
                    };
                }
                Placed::Mapped { start, region } => {
                    let part = self.parts.get(region as usize);
                    if let Some(found) = part.and_then(|part| here(start.into(), part)) {
                        return Found::Here(found);
                    }
                }
            }
        }
        Found::Nothing
    }

    /// What is found in a process, or in those that it has inherited its mappings from.
    fn inherited<T>(&self, pid: i32, time: u64, look: impl Fn(i32, u64) -> Found<T>) -> Option<T> {
        let (mut pid, mut time) = (pid, time);
        for _ in 0..GENERATIONS {
            match look(pid, time) {
                Found::Here(found) => return Some(found),
                Found::Nothing => return None,
                // Of the parent, what it had when the child began; its own exec at that very moment is later.
                Found::Inherited {
                    parent,
                    time: began,
                } => (pid, time) = (parent, began),
            }
        }
        None
    }

    /// Begins a new address space, with the mappings of `parent` if there is one.
    fn begin(&mut self, pid: i32, time: u64, parent: Option<i32>) {
        self.by_pid.entry(pid).or_default().push(Space {
            from: time,
            parent,
            ..Space::default()
        });
    }

    /// Adds a mapping to the newest address space of a process.
    fn map(&mut self, pid: i32, time: u64, start: u64, part: &FilePart) {
        let spaces = self.by_pid.entry(pid).or_default();
        if spaces.is_empty() {
            spaces.push(Space::default());
        }
        if let Some(space) = spaces.last_mut() {
            if space.maps.is_empty() {
                // A program and its libraries.
                space.maps.reserve(8);
            }
            space.maps.push(Mapped {
                time,
                addresses: start..start.saturating_add(part.len),
                offset: part.offset,
                dso: part.dso,
            });
            space.cover.grown(&space.maps);
        }
    }

    /// The mapping at an address at a time.
    pub(crate) fn find(&self, pid: i32, address: u64, time: u64) -> Option<Mapping> {
        let here = |start: u64, part: &FilePart| {
            let is_here = (start..start.saturating_add(part.len)).contains(&address);
            is_here.then_some(Mapping {
                start,
                offset: part.offset,
                dso: part.dso,
            })
        };
        self.inherited(pid, time, |pid, time| match self.by_pid.get(&pid) {
            Some(spaces) => look(spaces, time, |space| space.find(address, time)),
            None => self.look_settled(pid, time, here),
        })
    }

    /// What `find` finds in the mappings that a process has made since it began the program that it runs at a time, or has inherited, the last
    /// one first.
    pub(crate) fn find_mapped<T>(
        &self,
        pid: i32,
        time: u64,
        find: impl Fn(Mapping) -> Option<T>,
    ) -> Option<T> {
        self.inherited(pid, time, |pid, time| match self.by_pid.get(&pid) {
            Some(spaces) => look(spaces, time, |space| {
                let mut maps = space.maps.iter().rev().filter(|map| map.time <= time);
                maps.find_map(|map| find(map.mapping()))
            }),
            None => self.look_settled(pid, time, |start, part| {
                find(Mapping {
                    start,
                    offset: part.offset,
                    dso: part.dso,
                })
            }),
        })
    }

    /// Forgets the address spaces that are not needed after a time: those of processes that do not live any more, but for those that
    /// living ones began with, and those before an `execve(2)`.
    pub(crate) fn forget_before(&mut self, time: u64, living: &HashSet<i32>) {
        let mut kept: HashSet<SpaceIndex> = HashSet::default();
        for (&pid, spaces) in self.by_pid.iter().filter(|(pid, _)| living.contains(pid)) {
            let begun = spaces.partition_point(|space| space.from <= time);
            for at in begun.saturating_sub(1)..spaces.len() {
                self.keep(pid, at, &mut kept);
            }
        }
        self.by_pid.retain(|&pid, spaces| {
            let mut at = 0;
            spaces.retain(|_| {
                at += 1;
                kept.contains(&SpaceIndex { pid, at: at - 1 })
            });
            spaces.iter_mut().for_each(Space::shorten);
            !spaces.is_empty()
        });
    }

    /// Notes an address space and those that it began with.
    fn keep(&self, mut pid: i32, mut at: usize, kept: &mut HashSet<SpaceIndex>) {
        for _ in 0..GENERATIONS {
            let Some(space) = self.by_pid.get(&pid).and_then(|spaces| spaces.get(at)) else {
                return;
            };
            let (true, Some(parent)) = (kept.insert(SpaceIndex { pid, at }), space.parent) else {
                return;
            };
            let parents = self.by_pid.get(&parent).map_or(&[][..], Vec::as_slice);
            let begun = parents.partition_point(|parent| parent.from <= space.from);
            let Some(before) = begun.checked_sub(1) else {
                return;
            };
            (pid, at) = (parent, before);
        }
    }

    /// Address spaces and mappings that are known.
    pub(crate) fn len(&self) -> usize {
        let spaces = self.by_pid.values().flatten();
        spaces.map(|space| 1 + space.maps.len()).sum()
    }

    /// The files of all mappings.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut DsoId> {
        let spaces = self.by_pid.values_mut().flatten();
        spaces.flat_map(|space| space.maps.iter_mut().map(|map| &mut map.dso))
    }

    /// The first time after `time` at which the mappings of a process change; `u64::MAX` if they do not.
    pub(crate) fn stable_until(&self, pid: i32, time: u64) -> u64 {
        let Some(spaces) = self.by_pid.get(&pid) else {
            let placings = self.settled(pid);
            let next = placings.partition_point(|placing| placing.time <= PackedU64::from(time));
            return placings.get(next).map_or(u64::MAX, |next| next.time.into());
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

    /// When the address space that a process has at a time began; 0 if that is not known.
    pub(crate) fn began(&self, pid: i32, time: u64) -> u64 {
        let Some(spaces) = self.by_pid.get(&pid) else {
            let mut placings = self.settled(pid).iter().rev();
            let begun = placings.find(|placing| {
                let begins = matches!(placing.change, Placed::Empty | Placed::Inherited(_));
                begins && placing.time <= PackedU64::from(time)
            });
            return begun.map_or(0, |placing| placing.time.into());
        };
        let begun = spaces.partition_point(|space| space.from <= time);
        let space = begun.checked_sub(1).and_then(|at| spaces.get(at));
        space.map_or(0, |space| space.from)
    }
}

/// An address space: one of those that a process had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SpaceIndex {
    pid: i32,
    at: usize,
}

/// What is found in one process.
enum Found<T> {
    Here(T),
    Inherited { parent: i32, time: u64 },
    Nothing,
}

/// What is found in the address space that a process has at a time.
fn look<T>(spaces: &[Space], time: u64, here: impl FnOnce(&Space) -> Option<T>) -> Found<T> {
    let begun = spaces.partition_point(|space| space.from <= time);
    let Some(space) = begun.checked_sub(1).and_then(|at| spaces.get(at)) else {
        return Found::Nothing;
    };
    match (here(space), space.parent) {
        (Some(found), _) => Found::Here(found),
        (None, Some(parent)) => Found::Inherited {
            parent,
            time: space.from,
        },
        (None, None) => Found::Nothing,
    }
}

impl Space {
    /// Forgets mappings that others have taken the place of, and of very many the oldest.
    fn shorten(&mut self) {
        if self.maps.len() <= MAX_LIVING_MAPPINGS {
            return;
        }
        let mut seen = HashSet::default();
        let newest = self.maps.drain(..).rev();
        let mut maps: Vec<Mapped> = newest
            .filter(|map| seen.insert((map.addresses.start, map.addresses.end)))
            .take(MAX_MAPPINGS)
            .collect();
        maps.reverse();
        self.cover = Cover::default();
        for map in maps {
            self.maps.push(map);
            self.cover.grown(&self.maps);
        }
    }

    fn find(&self, address: u64, time: u64) -> Option<Mapping> {
        let known = self.maps.partition_point(|map| map.time <= time);
        let found = self.cover.latest(&self.maps, known, address)?;
        Some(self.maps.get(found)?.mapping())
    }
}

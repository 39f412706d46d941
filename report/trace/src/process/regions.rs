//! Parts of files that are mapped: processes of one program map the same ones, at addresses of their own.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use crate::process::strings::StringId;

/// Regions that are looked for among the known ones.
const REMEMBERED: usize = 4096;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Region {
    /// Bytes.
    pub(crate) len: u64,
    /// File offset of the first.
    pub(crate) offset: u64,
    pub(crate) path: StringId,
    pub(crate) build_id: Option<StringId>,
    /// Whether it is memory of no file that is not executable.
    pub(crate) is_data: bool,
}

/// Regions with their numbers. The same may have several: a map of all would cost more than it saves where they are all different.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    all: Vec<Region>,
    /// By hash, the number of the latest.
    latest: Vec<u32>,
}

impl Regions {
    /// The number of a region, and the bytes of memory that it takes if it is new.
    pub(crate) fn number(&mut self, region: Region) -> (u32, usize) {
        if self.latest.is_empty() {
            self.latest = vec![u32::MAX; REMEMBERED];
        }
        let hash = FixedState::default().hash_one(region) as usize % REMEMBERED;
        let new = self.all.len() as u32;
        let Some(latest) = self.latest.get_mut(hash) else {
            return (new, 0);
        };
        if self.all.get(*latest as usize) == Some(&region) {
            return (*latest, 0);
        }
        *latest = new;
        self.all.push(region);
        (new, size_of::<Region>())
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Region> {
        self.all.get(number as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.all.iter()
    }
}

//! Byte strings, each kept once, in the order in which they came: names, paths and build-ids of a log, most of which are repeated. And parts of files
//! that are mapped: processes of one program map the same ones, at addresses of their own.

use std::hash::BuildHasher as _;
use std::num::NonZeroU32;

use foldhash::fast::FixedState;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Byte strings by number. Each takes some 20 bytes beside its own: a trace may have millions of different ones.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    strings: Strings,
    /// Numbers of strings.
    numbers: HashTable<u32>,
    state: RandomState,
}

/// Byte strings one after the other.
#[derive(Debug, Default)]
struct Strings {
    bytes: Vec<u8>,
    /// Where each string ends.
    ends: Vec<usize>,
}

/// The number of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberedString {
    pub(crate) number: u32,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
}

impl Interner {
    /// The number of a string, which is added if it is new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> NumberedString {
        let Self {
            strings,
            numbers,
            state,
        } = self;
        let entry = numbers.entry(
            state.hash_one(bytes),
            |number| strings.get(*number) == Some(bytes),
            |number| state.hash_one(strings.get(*number).unwrap_or_default()),
        );
        match entry {
            Entry::Occupied(known) => NumberedString {
                number: *known.get(),
                is_new: false,
            },
            Entry::Vacant(place) => {
                let number = strings.ends.len() as u32;
                place.insert(number);
                strings.push(bytes);
                NumberedString {
                    number,
                    is_new: true,
                }
            }
        }
    }

    /// The bytes of a string.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8]> {
        self.strings.get(number)
    }

    /// All strings, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.strings.ends.len() as u32).filter_map(|number| self.get(number))
    }
}

impl Strings {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }
}

/// One of the [`StringPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StringId(NonZeroU32);

impl StringId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Strings with their numbers.
#[derive(Debug, Default)]
pub(crate) struct StringPool(Interner);

impl StringPool {
    /// The number of a string, and the bytes of memory that it takes if it is new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> (StringId, usize) {
        /// What the table takes at most besides the bytes, while it grows.
        const ENTRY: usize = 32;
        let NumberedString { number, is_new } = self.0.intern(bytes);
        let string = StringId(NonZeroU32::MIN.saturating_add(number));
        (string, if is_new { ENTRY + 2 * bytes.len() } else { 0 })
    }

    /// The numbers of all strings of other ones, in their order, and the bytes of memory that those take that are new.
    pub(crate) fn intern_all(&mut self, others: &Self) -> (InternedStrings, usize) {
        let mut memory = 0;
        let strings = others.0.iter().map(|bytes| {
            let (string, more) = self.intern(bytes);
            memory += more;
            string
        });
        (InternedStrings(strings.collect()), memory)
    }

    /// The bytes of a string; empty if it is not in here.
    pub(crate) fn get(&self, string: StringId) -> &[u8] {
        self.0.get(string.0.get() - 1).unwrap_or_default()
    }
}

/// The numbers that other strings have in here.
#[derive(Debug)]
pub(crate) struct InternedStrings(Vec<StringId>);

impl InternedStrings {
    pub(crate) fn get(&self, string: StringId) -> StringId {
        let found = self.0.get(string.index());
        found.copied().unwrap_or(string)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_has_one_number() {
        let mut interner = Interner::default();
        assert_eq!(interner.get(0), None);
        for round in 0..2 {
            for number in 0..1000_u32 {
                let text = "x".repeat(number as usize % 7) + &number.to_string();
                let interned = interner.intern(text.as_bytes());
                let is_new = round == 0;
                assert_eq!(interned, NumberedString { number, is_new });
            }
        }
        let empty = interner.intern(b"");
        assert_eq!((empty.number, empty.is_new), (1000, true));
        assert_eq!(interner.get(1000), Some(&b""[..]));
        assert_eq!(interner.get(3), Some(&b"xxx3"[..]));
        assert_eq!(interner.iter().count(), 1001);
    }
}

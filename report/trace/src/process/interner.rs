//! Byte strings, each kept once, in the order in which they came.

use std::hash::BuildHasher;

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

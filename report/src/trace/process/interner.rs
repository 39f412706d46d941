//! Byte strings, each kept once, in the order in which they came.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

/// A slot that is not used.
const FREE: u32 = u32::MAX;
/// Slots of the smallest table.
const LEAST: usize = 16;

/// Byte strings by number. Each takes some 20 bytes beside its own: a trace may have millions of different ones.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// All bytes, one string after the other.
    bytes: Vec<u8>,
    /// Where each string ends.
    ends: Vec<usize>,
    /// Numbers of strings, each at the first free slot from that of its hash on.
    slots: Vec<u32>,
    state: RandomState,
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
        // At most three of four slots are taken.
        if self.ends.len() >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let place = self.place(bytes);
        let found = self.slots.get(place).copied().unwrap_or(FREE);
        if found != FREE {
            return NumberedString {
                number: found,
                is_new: false,
            };
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = number;
        }
        NumberedString {
            number,
            is_new: true,
        }
    }

    /// The bytes of a string.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// All strings, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len() as u32).filter_map(|number| self.get(number))
    }

    /// The slot of a string, or the free one that it is to have.
    fn place(&self, bytes: &[u8]) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = self.state.hash_one(bytes) as usize & mask;
        loop {
            match self.slots.get(place) {
                Some(&number) if number != FREE && self.get(number) != Some(bytes) => {
                    place = place.wrapping_add(1) & mask;
                }
                _ => return place,
            }
        }
    }

    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(LEAST);
        self.slots.clear();
        self.slots.resize(slots, FREE);
        for number in 0..self.ends.len() as u32 {
            let Some(bytes) = self.get(number) else {
                continue;
            };
            let place = self.place(bytes);
            if let Some(slot) = self.slots.get_mut(place) {
                *slot = number;
            }
        }
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

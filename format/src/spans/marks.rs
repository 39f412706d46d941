//! What hits say of the arguments in which the begin and the end of a span must agree, as hashes.

use std::hash::BuildHasher;

use crate::Value;

/// Hashes of arguments that begin and end of a span have in common. 0 means that a value is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks([u64; Self::APART]);

impl Marks {
    /// Number of arguments with a mark of their own; further ones share the last.
    pub const APART: usize = 4;

    /// The marks of this number of arguments without known values.
    pub fn unknown(arguments: usize) -> Self {
        Self(std::array::from_fn(|at| u64::from(at >= arguments)))
    }

    /// Takes the mark of the next argument, which is at this place.
    #[inline]
    pub fn set(&mut self, at: usize, mark: u64) {
        let slot = &mut self.0[at.min(Self::APART - 1)];
        *slot = if at < Self::APART {
            mark
        } else {
            slot.rotate_left(7) ^ mark
        };
    }

    /// Whether the value of an argument is not known.
    pub(super) fn is_partial(self) -> bool {
        self.0.contains(&0)
    }

    /// Whether the values that are known on both sides are the same.
    pub(super) fn is_compatible(self, other: Self) -> bool {
        let both = self.0.iter().zip(other.0);
        both.into_iter()
            .all(|(&one, other)| one == other || one == 0 || other == 0)
    }

    /// The marks as words.
    pub const fn words(self) -> [u64; Self::APART] {
        self.0
    }

    /// The marks of these words.
    pub const fn from_words(words: [u64; Self::APART]) -> Self {
        Self(words)
    }

    /// Whether the value of the first argument is not known.
    pub const fn lacks_first(self) -> bool {
        let [first, ..] = self.0;
        first == 0
    }

    /// One word for all of them.
    pub const fn word(self) -> u64 {
        let [a, b, c, d] = self.0;
        a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47)
    }
}

/// The mark of a value; 0 if it is not known, or is a number and numbers need not agree.
pub fn mark(value: &Value, numbers: bool, state: &impl BuildHasher) -> u64 {
    match value {
        Value::String(string) => state.hash_one(&*string.bytes) | 1,
        Value::Unsigned(number) if numbers => mark_of_number(*number, state),
        Value::Signed(number) if numbers => mark_of_number(number.cast_unsigned(), state),
        _ => 0,
    }
}

/// The mark of a number, of which the lowest 64 bits are given.
#[inline]
pub fn mark_of_number(bits: u64, state: &impl BuildHasher) -> u64 {
    state.hash_one(bits) | 1
}

//! What hits say of the arguments in which the begin and the end of a span must agree, as hashes.

use std::hash::BuildHasher;

use crate::Value;

/// Hashes of arguments that begin and end of a span have in common. 0 means that a value is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks([u64; Self::APART]);

impl Marks {
    /// Number of arguments with a mark of their own; further ones share the last, which is not known if one of them is not.
    pub const APART: usize = 4;

    /// The marks of this number of arguments without known values.
    pub fn unknown(arguments: usize) -> Self {
        Self(std::array::from_fn(|at| u64::from(at >= arguments)))
    }

    /// Takes the mark of the next argument, which is at this place.
    #[inline]
    pub fn set(&mut self, at: usize, mark: u64) {
        let slot = &mut self.0[at.min(Self::APART - 1)];
        *slot = match at < Self::APART {
            true => mark,
            false if *slot == 0 || mark == 0 => 0,
            false => slot.rotate_left(7) ^ mark,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(of: &[u64]) -> Marks {
        let mut marks = Marks::unknown(of.len());
        let all = of.iter().enumerate();
        all.for_each(|(at, mark)| marks.set(at, *mark));
        marks
    }

    /// A value that is missing is a known difference to none, whichever argument it is.
    #[test]
    fn a_shared_mark_is_unknown_if_one_of_its_arguments_is() {
        let known = marks(&[1, 3, 5, 7, 9, 11]);
        assert!(!known.is_partial());
        for missing in 0..6 {
            let mut of = [1, 3, 5, 7, 9, 11];
            of[missing] = 0;
            let partial = marks(&of);
            assert!(partial.is_partial(), "{missing}");
            assert!(partial.is_compatible(known), "{missing}");
        }
        assert!(!marks(&[1, 3, 5, 7, 9, 13]).is_compatible(known));
    }
}

//! Names, paths and build-ids of a log, each stored once: most are repeated.

use std::num::NonZeroU32;

use crate::process::interner::{Interner, NumberedString};

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

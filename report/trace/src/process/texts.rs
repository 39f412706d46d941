//! Names, paths and build-ids of a log, each stored once: most are repeated.

use std::num::NonZeroU32;

use crate::process::interner::{Interner, NumberedString};

/// One of the [`TextPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextId(NonZeroU32);

impl TextId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Texts with their numbers.
#[derive(Debug, Default)]
pub(crate) struct TextPool(Interner);

impl TextPool {
    /// The number of a text, and the bytes of memory that it takes if it is new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> (TextId, usize) {
        /// What the table takes at most besides the bytes, while it grows.
        const ENTRY: usize = 32;
        let NumberedString { number, is_new } = self.0.intern(bytes);
        let text = TextId(NonZeroU32::MIN.saturating_add(number));
        (text, if is_new { ENTRY + 2 * bytes.len() } else { 0 })
    }

    /// The numbers of all texts of other ones, in their order, and the bytes of memory that those take that are new.
    pub(crate) fn intern_all(&mut self, others: &Self) -> (InternedTexts, usize) {
        let mut memory = 0;
        let texts = others.0.iter().map(|bytes| {
            let (text, more) = self.intern(bytes);
            memory += more;
            text
        });
        (InternedTexts(texts.collect()), memory)
    }

    /// The bytes of a text; empty if it is not in here.
    pub(crate) fn get(&self, text: TextId) -> &[u8] {
        self.0.get(text.0.get() - 1).unwrap_or_default()
    }
}

/// The numbers that other texts have in here.
#[derive(Debug)]
pub(crate) struct InternedTexts(Vec<TextId>);

impl InternedTexts {
    pub(crate) fn get(&self, text: TextId) -> TextId {
        let found = self.0.get(text.index());
        found.copied().unwrap_or(text)
    }
}

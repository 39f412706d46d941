//! Names, paths and build-ids of a log, each stored once: most are repeated.

use std::num::NonZeroU32;

use foldhash::HashMap;

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
pub(crate) struct TextPool {
    all: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, TextId>,
}

impl TextPool {
    /// The number of a text, and the bytes of memory that it takes if it is new.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> (TextId, usize) {
        /// What the two tables and the allocations take besides the bytes.
        const ENTRIES: usize = 96;
        if let Some(text) = self.numbers.get(bytes) {
            return (*text, 0);
        }
        self.all.push(bytes.into());
        let text = TextId(NonZeroU32::MIN.saturating_add(self.all.len() as u32 - 1));
        self.numbers.insert(bytes.into(), text);
        (text, ENTRIES + 2 * bytes.len())
    }

    /// The numbers of all texts of other ones, in their order, and the bytes of memory that those take that are new.
    pub(crate) fn intern_all(&mut self, others: &Self) -> (InternedTexts, usize) {
        let mut memory = 0;
        let texts = others.all.iter().map(|bytes| {
            let (text, more) = self.intern(bytes);
            memory += more;
            text
        });
        (InternedTexts(texts.collect()), memory)
    }

    /// The bytes of a text; empty if it is not in here.
    pub(crate) fn get(&self, text: TextId) -> &[u8] {
        let found = self.all.get(text.index());
        found.map_or(&[], |bytes| bytes)
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

//! Words for numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Words by number, shared between arguments.
pub type Words = Arc<BTreeMap<i64, String>>;

/// Words for an argument's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Each number has a word.
    Enum(Words),
    /// Each bit, or group of bits, has a word.
    Flags(Words),
}

impl Labels {
    /// The words by number, in ascending order.
    #[must_use]
    pub fn words(&self) -> &BTreeMap<i64, String> {
        match self {
            Self::Enum(words) | Self::Flags(words) => words,
        }
    }

    /// The number of a word.
    #[must_use]
    pub fn number(&self, word: &str) -> Option<i64> {
        let same = self.words().iter().find(|(_, known)| *known == word);
        same.map(|(number, _)| *number)
    }
}

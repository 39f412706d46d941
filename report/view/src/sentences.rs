//! Faults and reasons in sentences.

use crate::hints::HintWords;

/// What is shown in sentences.
pub trait Sentences {
    /// The sentences, with hints in the words of the program that shows them.
    #[must_use]
    fn sentences(&self, hints: HintWords) -> Vec<String>;
}

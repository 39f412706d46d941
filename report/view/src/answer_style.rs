//! The style of answers in text.

use crate::hints::HintWords;
use crate::theme::Theme;

/// The style of an answer in text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerStyle {
    /// Whether numbers with a unit are shown as times and sizes.
    pub(crate) human: bool,
    /// Colours.
    pub(crate) theme: Theme,
    /// The words for hints.
    pub(crate) hints: HintWords,
}

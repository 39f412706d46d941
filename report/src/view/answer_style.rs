//! How an answer looks as text.

use crate::view::hints::HintWords;
use crate::view::theme::Theme;

/// How an answer looks as text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerStyle {
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub(crate) human: bool,
    /// Colours.
    pub(crate) theme: Theme,
    /// The words for how to ask for more.
    pub(crate) hints: HintWords,
}

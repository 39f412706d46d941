//! The style of answers in text.

use crate::hints::HintWords;
use crate::theme::Theme;

/// The style of an answer in text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerStyle {
    /// Colours, and the width of lines.
    pub(crate) theme: Theme,
    /// The words for hints.
    pub(crate) hints: HintWords,
    /// Lines of the place where the text is read; `None` if it has room for all of them.
    pub(crate) lines: Option<usize>,
}

//! The stack of an event.

use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};
use usdtrec_view::stack_cut::reason;

/// The stack of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowStack {
    /// The innermost frame first: that of the hit.
    pub frames: Vec<FrameName>,
    /// Why there are no more frames; `None` if the last one is the outermost, or the recorder did not say.
    pub cut: Option<String>,
}

impl RowStack {
    pub(crate) fn new(stack: CallStack) -> Self {
        Self {
            cut: stack.cut.map(|cut| reason(&cut).into_owned()),
            frames: stack.frames,
        }
    }
}

//! A stack with the names of its functions.

use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};

use crate::folded::{escaped, line_of};
use crate::frames::{CALLED_BY, cut_text, frame_text};
use crate::text::width::width;

/// Width of a chain in a table, in columns, that further callers are left out of.
const CHAIN: usize = 100;

/// The names of a stack. Stacks with the same names are equal, and ordered by these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackName {
    /// The frames in a line, the outermost first, as programs that draw flame graphs read them. It begins with why the stack is cut.
    folded: String,
    /// The frames, the innermost first, and at the end why the stack is cut.
    frames: Vec<String>,
}

impl StackName {
    pub(super) fn new(stack: &CallStack) -> Self {
        let frames = stack.frames.iter().map(frame_text);
        let frames: Vec<String> = frames.chain(stack.cut.iter().map(cut_text)).collect();
        let folded: Vec<String> = frames.iter().rev().map(|frame| escaped(frame)).collect();
        Self {
            folded: line_of(&folded),
            frames,
        }
    }

    /// A stack of which only the addresses are known, the innermost first.
    #[must_use]
    pub fn unnamed(addresses: impl Iterator<Item = u64>) -> Self {
        Self::new(&CallStack {
            frames: addresses.map(FrameName::Address).collect(),
            cut: None,
        })
    }

    /// The frames in a line, the outermost first: `main;work;leaf`. Why the stack is cut comes before them.
    #[must_use]
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The innermost frames in a line, and how many more there are.
    pub(super) fn chain(&self) -> String {
        let mut chain = String::new();
        for (number, frame) in self.frames.iter().enumerate() {
            let between = if number == 0 { "" } else { CALLED_BY };
            let is_last = number + 1 == self.frames.len();
            let columns = width(&chain) + between.len() + width(frame);
            if number > 0 && !is_last && columns > CHAIN {
                let more = self.frames.len() - number;
                return format!("{chain}{CALLED_BY}… {more} more");
            }
            chain.extend([between, frame]);
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn stack(names: &[&str]) -> StackName {
        let frames = names.iter().map(|name| FrameName::Function {
            name: (*name).into(),
            file: Path::new("/bin/app").into(),
            inlined: false,
        });
        StackName::new(&CallStack {
            frames: frames.collect(),
            cut: None,
        })
    }

    #[test]
    fn the_outermost_frame_is_first_if_folded_and_last_in_a_chain() {
        let few = stack(&["leaf", "a;b", "main"]);
        assert_eq!(few.folded(), "main;a\\x3bb;leaf");
        assert_eq!(few.chain(), "leaf <- a;b <- main");
        let unnamed = StackName::unnamed([0x10, 0x20].into_iter());
        assert_eq!(unnamed.folded(), "0x20;0x10");
    }

    #[test]
    fn long_chains_say_how_much_is_left_out() {
        let long = "f".repeat(60);
        let many = stack(&[&long, &long, "c", "main"]);
        assert_eq!(many.chain(), format!("{long} <- … 3 more"));
        let two = stack(&[&long, &long]);
        assert_eq!(two.chain(), format!("{long} <- {long}"));
    }
}

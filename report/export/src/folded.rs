//! Folded stacks: `outer;inner WEIGHT`.

use std::io::{self, Write};

use usdtrec_analysis::stacks::weighed::WeighedStacks;
use usdtrec_view::folded::lines;

/// Writes the format.
pub(crate) fn write(stacks: &WeighedStacks, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(lines(stacks).as_bytes())
}

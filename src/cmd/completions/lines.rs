//! Printing words, one a line.

use std::fmt;
use std::io::{self, BufWriter, Write};

/// Prints each of these on a line of its own.
pub(super) fn print_lines(lines: impl IntoIterator<Item = impl fmt::Display>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

//! The room for texts on standard output.

use std::io::{self, IsTerminal as _};

use rustix::termios::{Winsize, tcgetwinsize};

/// Minimum width, columns. Narrower places are treated as this wide.
pub(crate) const MIN_COLUMNS: u16 = 40;

/// The width of lines, columns: what is asked for, else that of `COLUMNS`, else that of the terminal; `None` if standard output is none.
pub(crate) fn columns(asked: Option<u16>) -> Option<usize> {
    let of_terminal = || size().map(|size| size.ws_col);
    let columns = asked.or_else(of_environment).or_else(of_terminal);
    columns.map(|columns| usize::from(columns.max(MIN_COLUMNS)))
}

/// The width to which lines are folded that other programs look for as a whole: what is asked for, or that of a terminal.
pub(crate) fn fold_columns(asked: Option<u16>) -> Option<usize> {
    let is_read = asked.is_some() || io::stdout().is_terminal();
    is_read.then(|| columns(asked)).flatten()
}

/// The number of lines of the terminal; `None` if standard output is none.
pub(crate) fn lines() -> Option<usize> {
    let lines = size()?.ws_row;
    (lines > 0).then(|| usize::from(lines))
}

/// `COLUMNS`, which a shell sets and exports if it is told to.
fn of_environment() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.parse().ok().filter(|&columns| columns > 0)
}

/// The size of the terminal, if it knows its width.
fn size() -> Option<Winsize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out))?;
    size.ok().filter(|size| size.ws_col > 0)
}

//! The room for texts on standard output, and lines folded to it. Output to files and pipes is not folded, so that grep finds whole lines.

use std::io::{self, IsTerminal as _, StdoutLock, Write};

use rustix::termios::{Winsize, tcgetwinsize};
use unicode_width::UnicodeWidthStr as _;

/// Minimum width, columns. Narrower places are treated as this wide.
pub(crate) const MIN_COLUMNS: u16 = 40;

/// The width of lines, columns: what is asked for, else that of `COLUMNS`, else that of the terminal; `None` if standard output is none.
pub(crate) fn columns(asked: Option<u16>) -> Option<usize> {
    let of_terminal = || size().map(|size| size.ws_col);
    let columns = asked.or_else(from_environment).or_else(of_terminal);
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
fn from_environment() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.parse().ok().filter(|&columns| columns > 0)
}

/// The size of the terminal, if it knows its width.
fn size() -> Option<Winsize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out))?;
    size.ok().filter(|size| size.ws_col > 0)
}

/// Additional indentation of continuation lines, columns.
const INDENT: usize = 4;
/// A writer that folds lines longer than `width` columns at blanks; `None` does not fold.
pub(crate) struct Fold<W: Write> {
    out: W,
    width: Option<usize>,
    line: Vec<u8>,
}

/// Standard output, folded if it is a terminal.
pub(crate) fn stdout() -> Fold<io::BufWriter<StdoutLock<'static>>> {
    let out = io::BufWriter::new(io::stdout().lock());
    Fold::new(out, fold_columns(None))
}

impl<W: Write> Fold<W> {
    /// A writer of lines of at most so many columns.
    pub(crate) const fn new(out: W, width: Option<usize>) -> Self {
        Self {
            out,
            width,
            line: Vec::new(),
        }
    }

    fn put_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match (self.width, std::str::from_utf8(&line)) {
            (Some(width), Ok(line)) => self.out.write_all(folded(line, width).as_bytes()),
            _ => self.out.write_all(&line),
        }
    }
}

impl<W: Write> Write for Fold<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.put_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_line()?;
        self.out.flush()
    }
}

/// Folds a line into lines of at most `width` columns. Longer words are not split.
fn folded(line: &str, width: usize) -> String {
    if line.trim_end().width() <= width {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let next = (indent + INDENT).min(width / 2);
    usdtrec_report::fold(
        &" ".repeat(indent),
        text.trim_end(),
        &" ".repeat(next),
        width,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, width: Option<usize>) -> String {
        let mut fold = Fold::new(Vec::new(), width);
        fold.write_all(text.as_bytes()).unwrap();
        fold.flush().unwrap();
        String::from_utf8(fold.out).unwrap()
    }

    #[test]
    fn long_lines_are_folded_and_short_ones_stay() {
        let text = "  ab cd   ef\nabcdefghijklmnop qr\n\n  a  b\n";
        let folded = "  ab cd\n     ef\nabcdefghijklmnop\n    qr\n\n  a  b\n";
        assert_eq!(written(text, Some(10)), folded);
        assert_eq!(written(text, None), text);
        assert_eq!(written("no newline", Some(10)), "no newline");
        // Each of these takes two columns.
        assert_eq!(
            written("漢字 漢字 漢字\n", Some(10)),
            "漢字 漢字\n    漢字\n"
        );
    }
}

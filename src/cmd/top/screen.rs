//! A terminal on which a table is shown in place of the one before it (xterm's control sequences).

use std::fs::File;
use std::io::{self, Write};

/// To the other screen; without a cursor, and lines that are too long are cut.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Back.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The terminal. When dropped, what was on it before is there again, and the last table below it.
pub(super) struct Screen {
    out: File,
    /// The last table; empty as long as there was none.
    last: String,
}

impl Screen {
    /// Leaves the terminal as it is until there is a table.
    pub(super) fn new(out: File) -> Self {
        let last = String::new();
        Self { out, last }
    }

    /// Shows a table, as many lines of it as there is room for.
    pub(super) fn show(&mut self, table: &str) -> io::Result<()> {
        let begin = if self.last.is_empty() { ENTER } else { "" };
        table.clone_into(&mut self.last);
        // Terminals that do not know their size say 0.
        let size = rustix::termios::tcgetwinsize(&self.out);
        let height = match size.map_or(0, |size| usize::from(size.ws_row)) {
            0 => 24,
            height => height.max(3),
        };
        // The cursor is to stay below, or all would move up.
        let cut = cut(table, height - 1);
        self.out
            .write_all(format!("{begin}{CLEAR}{cut}").as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if !self.last.is_empty() {
            // A terminal that is gone needs nothing.
            let _ = self
                .out
                .write_all(format!("{LEAVE}{}", self.last).as_bytes());
        }
    }
}

/// The first lines of a table, the last of them saying how many there are more.
fn cut(table: &str, height: usize) -> String {
    let count = table.lines().count();
    if count <= height {
        return table.to_owned();
    }
    let shown: Vec<&str> = table.lines().take(height - 1).collect();
    let more = count - shown.len();
    format!("{}\n… {more} more\n", shown.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        assert_eq!(cut("a\nb\nc\n", 3), "a\nb\nc\n");
        assert_eq!(cut("a\nb\nc\nd\n", 3), "a\nb\n… 2 more\n");
    }
}

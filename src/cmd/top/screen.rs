//! A terminal on which a table is shown in place of the one before it (xterm's control sequences).

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// To the other screen; without a cursor, and lines that are too long are cut.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Back.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The terminal. When dropped, and while the process is stopped by Ctrl-Z, what was on it before is there again, and the last table
/// below it.
pub(super) struct Screen(Arc<Mutex<State>>);

struct State {
    out: File,
    /// The last table; empty as long as there was none.
    last: String,
    /// Whether the other screen is shown.
    entered: bool,
}

impl Screen {
    /// Leaves the terminal as it is until there is a table.
    ///
    /// # Errors
    /// The system call's, if Ctrl-Z cannot be caught.
    pub(super) fn new(out: File) -> io::Result<Self> {
        let state = State {
            out,
            last: String::new(),
            entered: false,
        };
        let state = Arc::new(Mutex::new(state));
        let (mut stops, stopped) = (Signals::new([SIGTSTP])?, Arc::clone(&state));
        thread::spawn(move || {
            for signal in stops.forever() {
                let mut state = lock(&stopped);
                let entered = state.entered;
                state.leave();
                // Goes on here when the process does.
                let _ = emulate_default_handler(signal);
                if entered {
                    let _ = state.draw();
                }
            }
        });
        Ok(Self(state))
    }

    /// Shows a table, as many lines of it as there is room for.
    pub(super) fn show(&self, table: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        table.clone_into(&mut state.last);
        state.draw()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        lock(&self.0).leave();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn draw(&mut self) -> io::Result<()> {
        let begin = if self.entered { "" } else { ENTER };
        self.entered = true;
        // Terminals that do not know their size say 0.
        let size = rustix::termios::tcgetwinsize(&self.out);
        let height = match size.map_or(0, |size| usize::from(size.ws_row)) {
            0 => 24,
            height => height.max(3),
        };
        // The cursor is to stay below, or all would move up.
        let cut = cut(&self.last, height - 1);
        self.out
            .write_all(format!("{begin}{CLEAR}{cut}").as_bytes())
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
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

//! A terminal screen on which each table replaces the previous one (xterm control sequences).

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Switches to the alternate screen, hides the cursor, turns line wrap off.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Moves the cursor home and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The terminal. On drop, and while the process is stopped by Ctrl-Z, the main screen is shown, with the last table printed on it.
pub(super) struct Screen(Arc<Mutex<State>>);

struct State {
    out: File,
    /// The last table; empty before the first one.
    last: String,
    /// Whether the alternate screen is shown.
    entered: bool,
}

impl Screen {
    /// Catches SIGTSTP. The terminal is not changed before the first table.
    ///
    /// # Errors
    /// The error of `sigaction` or `pipe`, if SIGTSTP cannot be caught.
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
                // Returns when the process is continued.
                let _ = emulate_default_handler(signal);
                if entered {
                    let _ = state.draw();
                }
            }
        });
        Ok(Self(state))
    }

    /// Shows a table, cut to the height of the terminal.
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
        // 0 means that the size is unknown.
        let size = rustix::termios::tcgetwinsize(&self.out);
        let height = match size.map_or(0, |size| usize::from(size.ws_row)) {
            0 => 24,
            height => height.max(3),
        };
        // The last row is for the cursor: a table that fills it would scroll.
        let cut = cut(&self.last, height - 1);
        self.out
            .write_all(format!("{begin}{CLEAR}{cut}").as_bytes())
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
            // The terminal may be gone.
            let _ = self
                .out
                .write_all(format!("{LEAVE}{}", self.last).as_bytes());
        }
    }
}

/// Cuts a table to `height` lines. The last line then says how many lines are missing.
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
    fn cut_lines_are_counted() {
        assert_eq!(cut("a\nb\nc\n", 3), "a\nb\nc\n");
        assert_eq!(cut("a\nb\nc\nd\n", 3), "a\nb\n… 2 more\n");
    }
}

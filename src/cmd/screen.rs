//! A terminal screen on which each text replaces the previous one (xterm control sequences). It is drawn again when the size of the terminal
//! changes.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use usdtrec_report::stat::TableRoom;

use super::keyboard::Keyboard;
use super::screen_signals;
use crate::mutex::locked;

/// Switches to the alternate screen, hides the cursor, turns line wrap off.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Moves the cursor home.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears the rest of the screen.
const CLEAR_BELOW: &str = "\x1b[J";

/// The screen of this process, which is left if the process exits elsewhere.
static CURRENT: Mutex<Weak<Mutex<State>>> = Mutex::new(Weak::new());

/// Where a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextDestination {
    /// On the screen, until the next one.
    Screen(TableRoom),
    /// Below what was on the terminal before, where it stays.
    Terminal(TableRoom),
}

/// Makes the text that is shown.
pub(super) type ScreenText = Box<dyn Fn(TextDestination) -> String + Send>;

/// The terminal. On drop, and while the process is stopped by Ctrl-Z, the main screen is shown, with the last text printed on it.
pub(super) struct Screen(Arc<Mutex<State>>);

struct State {
    out: File,
    text: ScreenText,
    /// Whose keys are read one by one while the screen is shown.
    keyboard: Option<Keyboard>,
    /// Whether the alternate screen is shown.
    entered: bool,
}

impl Screen {
    /// Catches SIGTSTP, SIGCONT and SIGWINCH, and has faults leave the screen. A SIGTSTP that the caller ignores stays ignored. The terminal is not changed before the first [`draw`](Self::draw).
    ///
    /// # Errors
    /// The error of `sigaction` or `pipe`, if the signals cannot be caught.
    pub(super) fn new(out: File, keyboard: Option<Keyboard>, text: ScreenText) -> io::Result<Self> {
        screen_signals::restore_after_faults(&out, keyboard.as_ref(), LEAVE)?;
        let state = Arc::new(Mutex::new(State {
            out,
            text,
            keyboard,
            entered: false,
        }));
        *locked(&CURRENT) = Arc::downgrade(&state);
        let mut signals = Signals::new([SIGCONT, SIGWINCH])?;
        if !usdtrec_record::is_ignored(SIGTSTP) {
            signals.add_signal(SIGTSTP)?;
        }
        let handle = signals.handle();
        let shared = Arc::downgrade(&state);
        thread::spawn(move || {
            for signal in signals.forever() {
                let Some(state) = shared.upgrade() else {
                    handle.close();
                    continue;
                };
                let mut state = locked(&state);
                let entered = state.entered;
                if signal == SIGTSTP {
                    state.leave();
                    screen_signals::stop();
                }
                // After SIGSTOP the shell has set the modes of the terminal, and may have shown the main screen.
                if signal == SIGCONT && state.is_in_foreground() {
                    state.entered = false;
                }
                if entered {
                    let _ = state.draw();
                }
            }
        });
        Ok(Self(state))
    }

    /// Draws the text, cut to the height of the terminal; nothing while the process is in the background.
    pub(super) fn draw(&self) -> io::Result<()> {
        locked(&self.0).draw()
    }

    /// A handle with which another thread draws the text again.
    pub(super) fn drawer(&self) -> Drawer {
        Drawer(Arc::downgrade(&self.0))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        locked(&self.0).leave();
    }
}

/// Draws the text of a screen again.
pub(super) struct Drawer(Weak<Mutex<State>>);

impl Drawer {
    /// Draws it, if the screen is shown still.
    pub(super) fn draw(&self) -> io::Result<()> {
        let Some(state) = self.0.upgrade() else {
            return Ok(());
        };
        let mut state = locked(&state);
        match state.entered {
            true => state.draw(),
            false => Ok(()),
        }
    }
}

/// Shows the main screen, before the process exits without an end of the recording. A screen that is just being drawn stays, without the modes of its
/// keyboard: its terminal may have stalled.
pub(super) fn leave_screen() {
    screen_signals::give_keyboard_back();
    if let Some(state) = locked(&CURRENT).upgrade()
        && let Ok(mut state) = state.try_lock()
    {
        state.leave();
    }
}

impl State {
    fn draw(&mut self) -> io::Result<()> {
        if !self.is_in_foreground() {
            return Ok(());
        }
        let mut shown = String::new();
        if !self.entered {
            shown.push_str(ENTER);
            screen_signals::set_changed(true);
            if let Some(keyboard) = &self.keyboard {
                keyboard.take();
            }
        }
        self.entered = true;
        let room = self.room();
        shown.push_str(HOME);
        for line in cut(&(self.text)(TextDestination::Screen(room)), room.lines).lines() {
            shown.extend([line, CLEAR_LINE, "\n"]);
        }
        shown.push_str(CLEAR_BELOW);
        self.out.write_all(shown.as_bytes())
    }

    /// Whether the terminal is that of the foreground, or of no shell that knows one.
    fn is_in_foreground(&self) -> bool {
        tcgetpgrp(&self.out).map_or(true, |group| group == getpgrp())
    }

    /// The room for a text. The last row is for the cursor: a text that fills it would scroll.
    fn room(&self) -> TableRoom {
        // 0 means that the size is unknown.
        let size = tcgetwinsize(&self.out).ok();
        let known = |number: Option<u16>, usual: usize| match number.map_or(0, usize::from) {
            0 => usual,
            number => number,
        };
        TableRoom {
            columns: known(size.map(|size| size.ws_col), 80),
            lines: known(size.map(|size| size.ws_row), 24).max(3) - 1,
        }
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
            if let Some(keyboard) = &self.keyboard {
                keyboard.give_back();
            }
            let last = (self.text)(TextDestination::Terminal(self.room()));
            // The terminal may be gone.
            let _ = self.out.write_all(format!("{LEAVE}{last}").as_bytes());
            screen_signals::set_changed(false);
        }
    }
}

/// Cuts a text to `height` lines. The last line then says how many lines are missing.
fn cut(text: &str, height: usize) -> String {
    let count = text.lines().count();
    if count <= height {
        return text.to_owned();
    }
    let shown: Vec<&str> = text.lines().take(height - 1).collect();
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

//! Keys of the terminal on standard input, each when it is pressed.

use std::io::stdin;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    Enter,
    Backspace,
    Escape,
}

/// The terminal on standard input.
#[derive(Clone, Debug)]
pub(super) struct Keyboard {
    /// Its modes before.
    modes: Termios,
}

impl Keyboard {
    /// The keyboard of standard input; `None` if it is not a terminal.
    pub(super) fn from_stdin() -> Option<Self> {
        let modes = tcgetattr(stdin()).ok()?;
        Some(Self { modes })
    }

    /// Begins to pass on each key when it is pressed, and to show none. Keys of signals (Ctrl-C, Ctrl-Z) stay such.
    pub(super) fn take(&self) {
        let mut modes = self.modes.clone();
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        set(&modes);
    }

    /// Sets the modes as they were before.
    pub(super) fn give_back(&self) {
        set(&self.modes);
    }
}

/// Sets the modes, unless the process is in the background, where it would be stopped for that.
fn set(modes: &Termios) {
    if is_in_foreground() {
        // The terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, modes);
    }
}

fn is_in_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Passes keys to `take` in a thread of its own, as long as it returns `true`.
pub(super) fn read_keys(mut take: impl FnMut(Key) -> bool + Send + 'static) {
    thread::spawn(move || {
        while let Some(keys) = next_keys() {
            if !keys.into_iter().all(&mut take) {
                return;
            }
        }
    });
}

/// Waits for keys; `None` if the terminal is gone.
fn next_keys() -> Option<Vec<Key>> {
    const BACKGROUND: Duration = Duration::from_millis(200);
    let stdin = stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut polled, None) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Some(Vec::new()),
        Err(_) => return None,
    }
    if !is_in_foreground() {
        // What is typed there is for others.
        tcgetpgrp(&stdin).ok()?;
        thread::sleep(BACKGROUND);
        return Some(Vec::new());
    }
    let mut bytes = [0; 64];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(0) => None,
        Ok(length) => Some(keys(&bytes[..length])),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// The keys that a terminal sent at once. Sequences of keys without a character (arrows, functions) are left out.
fn keys(bytes: &[u8]) -> Vec<Key> {
    const ESCAPE: u8 = 0x1b;
    if let [ESCAPE, rest @ ..] = bytes {
        return match rest {
            [] => vec![Key::Escape],
            _ => Vec::new(),
        };
    }
    let text = String::from_utf8_lossy(bytes);
    let keys = text.chars().filter_map(|letter| match letter {
        '\r' | '\n' => Some(Key::Enter),
        '\x08' | '\x7f' => Some(Key::Backspace),
        '\x1b' => Some(Key::Escape),
        letter if letter.is_control() => None,
        letter => Some(Key::Character(letter)),
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_characters_and_few_others() {
        let characters = "/aé\r\x7f";
        assert_eq!(
            keys(characters.as_bytes()),
            [
                Key::Character('/'),
                Key::Character('a'),
                Key::Character('é'),
                Key::Enter,
                Key::Backspace
            ]
        );
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b[A"), []);
        assert_eq!(keys(b"\x02q"), [Key::Character('q')]);
    }
}

//! A screen with a table of what is counted in the kernel, and the keys that change it.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use rustix::process::{Signal, getpid, kill_process};
use usdtrec_format::escape::escape;
use usdtrec_report::stat::{LiveTable, RowChoice, StatSnapshot, TableRoom};

use super::keyboard::{Key, Keyboard, read_keys};
use super::screen::{Screen, TextDestination};
use crate::mutex::locked;

/// Whether keys change the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableKeys {
    /// They do, if standard input is a terminal.
    Taken,
    /// Standard input is somebody else's.
    Left,
}

/// The screen.
pub(super) struct CountScreen {
    shown: Arc<Mutex<Shown>>,
    /// `None` at the end.
    screen: Option<Screen>,
}

/// What is shown.
struct Shown {
    table: LiveTable,
    choice: RowChoice,
    latest: Option<Arc<StatSnapshot>>,
    /// What is shown instead of the latest counts.
    held: Option<Arc<StatSnapshot>>,
    /// Whether characters are those of the filter.
    is_typing: bool,
    /// Whether keys change it.
    has_keys: bool,
}

impl CountScreen {
    /// A screen; the terminal is not changed before the first table.
    ///
    /// # Errors
    /// The error of [`Screen::new`].
    pub(super) fn new(
        out: File,
        table: LiveTable,
        choice: RowChoice,
        keys: TableKeys,
    ) -> io::Result<Self> {
        let keyboard = match keys {
            TableKeys::Taken => Keyboard::from_stdin(),
            TableKeys::Left => None,
        };
        let has_keys = keyboard.is_some();
        let shown = Arc::new(Mutex::new(Shown {
            table,
            choice,
            latest: None,
            held: None,
            is_typing: false,
            has_keys,
        }));
        let of_screen = Arc::clone(&shown);
        let text = Box::new(move |place| locked(&of_screen).text(place));
        let screen = Screen::new(out, keyboard, text)?;
        if has_keys {
            let (drawer, of_keys) = (screen.drawer(), Arc::clone(&shown));
            read_keys(move |key| {
                let goes_on = locked(&of_keys).obey(key);
                if !goes_on {
                    // As Ctrl-C does.
                    let _ = kill_process(getpid(), Signal::INT);
                }
                goes_on && drawer.draw().is_ok()
            });
        }
        let screen = Some(screen);
        Ok(Self { shown, screen })
    }

    /// Shows the counts of an interval.
    pub(super) fn show(&self, snapshot: StatSnapshot) -> io::Result<()> {
        locked(&self.shown).latest = Some(Arc::new(snapshot));
        self.screen.as_ref().map_or(Ok(()), Screen::draw)
    }

    /// Leaves the screen. The last table stays on the terminal: that of the counts since the last interval, unless there are none.
    pub(super) fn end(&mut self, last: Option<StatSnapshot>) -> io::Result<()> {
        let has_begun = locked(&self.shown).latest.is_some();
        let last = last.filter(|last| last.count() > 0 || !has_begun);
        let shown = last.map_or(Ok(()), |last| self.show(last));
        self.screen = None;
        shown
    }
}

impl Shown {
    /// Changes what is shown. Whether the recording continues.
    fn obey(&mut self, key: Key) -> bool {
        match key {
            Key::Character(letter) if self.is_typing => self.choice.filter.push(letter),
            Key::Backspace if self.is_typing => {
                self.choice.filter.pop();
            }
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.choice.filter.clear();
                self.is_typing = false;
            }
            Key::Character('/') => self.is_typing = true,
            Key::Character('s') => {
                self.choice.order = self.table.next_order(self.choice.order);
            }
            Key::Character(' ') => {
                self.held = match self.held {
                    Some(_) => None,
                    None => self.latest.clone(),
                };
            }
            Key::Character('q') => return false,
            Key::Character(_) | Key::Backspace => {}
        }
        true
    }

    fn text(&self, place: TextDestination) -> String {
        let Some(latest) = &self.latest else {
            return String::new();
        };
        match place {
            TextDestination::Screen(room) if self.has_keys => {
                let lines = room.lines.saturating_sub(1);
                let counts = self.held.as_ref().unwrap_or(latest);
                let rest = TableRoom { lines, ..room };
                let table = self.table.show(counts, &self.choice, Some(rest));
                table + &self.table.foot(&self.foot(), room)
            }
            TextDestination::Screen(room) | TextDestination::Terminal(room) => {
                self.table.show(latest, &self.choice, Some(room))
            }
        }
    }

    /// What keys do.
    fn foot(&self) -> String {
        let filter = escape(&self.choice.filter);
        if self.is_typing {
            return format!("filter: {filter}_  (Enter keeps it, Esc removes it)");
        }
        let filter = match filter.is_empty() {
            true => "filter".to_owned(),
            false => format!("filter: {filter}"),
        };
        let hold = match self.held {
            Some(_) => "paused, space: continue",
            None => "space: pause",
        };
        let order = self.choice.order.name();
        format!("q: quit  /: {filter}  s: sort by {order}  {hold}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use usdtrec_report::stat::RowOrder;

    use super::*;

    fn shown() -> Shown {
        let snapshot = |seconds| {
            Arc::new(StatSnapshot {
                elapsed: Duration::from_secs(seconds),
                interval: Duration::from_secs(1),
                every: Duration::from_secs(1),
                measured: BTreeMap::new(),
                rows: Vec::new(),
            })
        };
        Shown {
            table: LiveTable::new(false, Vec::new(), Vec::new()),
            choice: RowChoice::default(),
            latest: Some(snapshot(7)),
            held: None,
            is_typing: false,
            has_keys: true,
        }
    }

    fn obey(shown: &mut Shown, keys: &str) -> bool {
        keys.chars().all(|letter| {
            let key = match letter {
                '\n' => Key::Enter,
                '<' => Key::Backspace,
                '!' => Key::Escape,
                letter => Key::Character(letter),
            };
            shown.obey(key)
        })
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut shown = shown();
        let room = TableRoom {
            columns: 80,
            lines: 10,
        };
        assert!(obey(&mut shown, "/q sx<\n"));
        assert_eq!(shown.choice.filter, "q s");
        assert!(shown.foot().contains("filter: q s  s: sort by rate"));
        assert!(obey(&mut shown, "s !"), "not typing any longer");
        assert_eq!(
            (shown.choice.order, &*shown.choice.filter),
            (RowOrder::Total, "")
        );
        assert!(shown.text(TextDestination::Screen(room)).contains("paused"));
        shown.latest = None;
        assert_eq!(shown.text(TextDestination::Screen(room)), "");
        assert!(!obey(&mut shown, "xq"));
    }

    /// While it is paused the counts stay; what remains on the terminal is the latest.
    #[test]
    fn a_pause_holds_the_counts() {
        let mut shown = shown();
        let room = TableRoom {
            columns: 80,
            lines: 10,
        };
        obey(&mut shown, " ");
        let held = shown.held.clone().expect("counts");
        shown.latest = Some(Arc::new(StatSnapshot {
            elapsed: Duration::from_secs(9),
            ..StatSnapshot::clone(&held)
        }));
        assert!(
            shown
                .text(TextDestination::Screen(room))
                .starts_with("# 7.0 s")
        );
        let left = shown.text(TextDestination::Terminal(room));
        assert!(
            left.starts_with("# 9.0 s") && !left.contains("quit"),
            "{left}"
        );
        obey(&mut shown, " ");
        assert!(
            shown
                .text(TextDestination::Screen(room))
                .starts_with("# 9.0 s")
        );
    }
}

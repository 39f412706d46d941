//! A terminal of so many columns, in which the binary under test draws tables again and again.

use std::path::Path;
use std::process::Command;

use crate::common::{Finished, Lab, Process, need_tool, run};

/// Where a table begins and ends.
const HOME: &str = "\x1b[H";
const CLEAR_BELOW: &str = "\x1b[J";
/// What switches to the screen, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// A terminal.
pub(super) struct Terminal<'l> {
    lab: &'l Lab,
    process: Process,
    /// The lines of the table that is being drawn.
    drawn: Vec<String>,
}

impl<'l> Terminal<'l> {
    /// Runs a shell command in a terminal; `$usdtrec` is the binary under test.
    #[track_caller]
    pub(super) fn start(lab: &'l Lab, columns: u32, command: &str) -> Self {
        need_tool("script");
        let script = format!("tty >tty; stty cols {columns} rows 24; {command}");
        let arguments = ["-q", "-e", "-c", &script, "/dev/null"];
        let mut terminal = lab.at_home(Path::new("script"), arguments);
        terminal.env("usdtrec", env!("CARGO_BIN_EXE_usdtrec"));
        terminal.env("NO_COLOR", "1");
        // The shell of `script` is that of the user.
        terminal.env("SHELL", "/bin/sh");
        Self {
            lab,
            process: Process::spawn(terminal),
            drawn: Vec::new(),
        }
    }

    /// Presses keys, and Enter after them.
    pub(super) fn press(&mut self, keys: &str) {
        self.process.say(keys);
    }

    /// Makes it as wide as this.
    pub(super) fn resize(&self, columns: u32) {
        let name = std::fs::read_to_string(self.lab.file("tty")).expect("its name");
        let mut stty = Command::new("stty");
        stty.args(["-F", name.trim(), "cols", &columns.to_string()]);
        run(stty).success();
    }

    /// Waits for a table that fulfils a condition.
    #[track_caller]
    pub(super) fn table(&mut self, is_wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        loop {
            let line = self.process.line().expect("the tables go on");
            let Some((_, begin)) = line.split_once(CLEAR_BELOW) else {
                self.drawn.push(plain(&line));
                continue;
            };
            let table = std::mem::replace(&mut self.drawn, vec![plain(begin)]);
            if is_wanted(&table) {
                return table;
            }
        }
    }

    /// Waits for a table with a text.
    #[track_caller]
    pub(super) fn table_with(&mut self, text: &str) -> Vec<String> {
        self.table(|table| table.iter().any(|line| line.contains(text)))
    }

    /// Waits for the end; what is on the main screen after it, and all that was shown.
    #[track_caller]
    pub(super) fn finish(self) -> (String, Finished) {
        let (after, ended) = self.finish_again();
        let shown = &ended.stdout;
        assert_eq!(shown.matches("\x1b[?1049h").count(), 1, "{shown:?}");
        (after, ended)
    }

    /// The same, if the screen was left and shown again meanwhile.
    #[track_caller]
    pub(super) fn finish_again(self) -> (String, Finished) {
        let ended = self.process.finish();
        let shown = &ended.stdout;
        let (_, after) = shown.rsplit_once(LEAVE).expect("the screen is left");
        (after.replace('\r', ""), ended)
    }
}

/// A line without the sequences that draw it.
fn plain(line: &str) -> String {
    let mut line = line.to_owned();
    for sequence in [ENTER, HOME, "\x1b[K", "\r"] {
        line = line.replace(sequence, "");
    }
    line
}

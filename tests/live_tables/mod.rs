//! Tables of what is counted in the kernel, which are drawn again at each interval: `stat -I` on a terminal.

mod terminal;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use unicode_width::UnicodeWidthStr;

use self::terminal::Terminal;
use crate::common::{Build, Lab, Process, test};

/// A program that hits with the texts and numbers that it is told (testdata/targets/keys.c).
struct Keys {
    process: Process,
    program: PathBuf,
}

impl Keys {
    fn start(lab: &Lab) -> Self {
        let program = Build::USUAL.make(lab, "keys.c", "keys");
        Self {
            process: Process::spawn(Command::new(&program)),
            program,
        }
    }

    fn pid(&self) -> String {
        self.process.pid().to_string()
    }

    /// `sdt_keys:NAME(LIST)@PATH`.
    fn event(&self, probe: &str) -> String {
        format!("sdt_keys:{probe}@{}", self.program.display())
    }

    fn obey(&mut self, command: &str) {
        self.process.say(command);
        assert_eq!(self.process.line().as_deref(), Some("done"));
    }
}

fn widest(table: &[String]) -> usize {
    let widths = table.iter().map(|line| line.width());
    widths.max().unwrap_or(0)
}

/// The words of the row of a key.
#[track_caller]
fn row<'t>(table: &'t [String], key: &str) -> Vec<&'t str> {
    let mut rows = table.iter().filter(|line| line.starts_with(key));
    let row = rows.next().unwrap_or_else(|| panic!("{key}: {table:#?}"));
    row[key.len()..].split_whitespace().collect()
}

/// One row a key, as wide as the terminal at most, also when its size changes; what programs wrote is escaped; and the last table stays.
#[test]
fn stat_draws_its_table_again() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    let command = format!(
        "exec $usdtrec stat -I 100 --by t -p {} -e '{}'",
        keys.pid(),
        keys.event("text(t=str(arg1))")
    );
    let mut terminal = Terminal::start(&lab, 80, &command);
    terminal.table_with("# ");
    keys.obey("hit 3 plain");
    keys.obey("hit 2 a\x1b[2J\x1b]0;title\x07b");
    keys.obey(&format!("hit 1 {}", "漢字".repeat(30)));
    let table = terminal.table_with("漢字");
    assert!(widest(&table) <= 80, "{table:#?}");
    assert!(table[0].contains("; keys:text"), "{table:#?}");
    assert!(table[1].starts_with("t "), "{table:#?}");
    assert!(!table.concat().contains('\x1b'), "{table:#?}");
    assert!(table.concat().contains(r"a\x1b[2J\x1b]0;title\x07b"));
    assert_eq!(row(&table, "plain")[2], "3", "the total: {table:#?}");
    assert!(table[1].contains("  Last "), "{table:#?}");
    terminal.resize(200);
    let table = terminal.table(|table| widest(table) > 100);
    assert!(widest(&table) <= 200, "{table:#?}");
    assert!(table.concat().contains(&"漢字".repeat(30)), "{table:#?}");
    terminal.resize(40);
    let table = terminal.table(|table| widest(table) <= 40);
    assert_eq!(row(&table, "plain")[2], "3", "{table:#?}");
    keys.obey("hit 4 plain");
    // Ctrl-C, as the terminal takes it.
    terminal.press("\x03");
    let (after, ended) = terminal.finish();
    ended.success();
    let last: Vec<String> = after.lines().map(str::to_owned).collect();
    assert_eq!(row(&last, "plain")[2], "7", "{after}");
    assert!(after.contains("10 events, 0 lost ]"), "{after}");
}

/// What goes to a file or pipe has no table that is drawn again, also with a terminal as standard error.
#[test]
fn other_outputs_of_stat_stay_lines() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    let command = format!(
        "$usdtrec stat -I 100 --duration 1s -p {} -e '{}' | cat >lines",
        keys.pid(),
        keys.event("text")
    );
    let arguments = ["-q", "-e", "-c", &command, "/dev/null"];
    let mut script = lab.at_home(std::path::Path::new("script"), arguments);
    script.env("usdtrec", env!("CARGO_BIN_EXE_usdtrec"));
    let mut script = Process::spawn(script);
    while !script.line().expect("a line").contains("[ usdtrec stat:") {}
    keys.obey("hit 5 a");
    script.finish().success();
    let lines = fs::read_to_string(lab.file("lines")).expect("the lines");
    assert!(!lines.contains('\x1b'), "{lines:?}");
    assert!(lines.matches("Probe ").count() > 2, "{lines}");
}

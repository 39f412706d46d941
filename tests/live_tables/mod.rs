//! Tables of what is counted in the kernel, which are drawn again at each interval: `stat -I` on a terminal, and `top --by`.

mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use unicode_width::UnicodeWidthStr;

use self::terminal::Terminal;
use crate::common::{Build, Lab, Process, Ticker, need_tool, run, signal, test};

/// A program that hits with the strings and numbers that it is told (testdata/targets/keys.c).
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
    need_tool("script");
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

/// `s` changes the order, `/` the choice of rows, `space` holds the table, and `q` ends it and gives the keyboard back.
#[test]
fn keys_change_the_table_of_top() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    let command = format!(
        "$usdtrec top -d 100ms --by t -p {} -e '{}'; status=$?; stty -a >modes; exit $status",
        keys.pid(),
        keys.event("text(t=str(arg1))")
    );
    let mut terminal = Terminal::start(&lab, 80, &command);
    terminal.table_with("# ");
    keys.obey("hit 300 ab");
    keys.obey("hit 200 Abc");
    keys.obey("hit 100 x");
    let is_drawn = |table: &[String]| table.iter().any(|line| line.starts_with("x "));
    let table = terminal.table(is_drawn);
    let foot = table.last().expect("lines");
    assert_eq!(foot, "q: quit  /: filter  s: sort by rate  space: pause");
    terminal.press("s");
    let table = terminal.table_with("s: sort by total");
    let first = |table: &[String]| table[2].split(' ').next().map(str::to_owned);
    assert_eq!(first(&table).as_deref(), Some("ab"), "{table:#?}");
    terminal.press("s");
    let table = terminal.table_with("s: sort by key");
    assert_eq!(first(&table).as_deref(), Some("Abc"), "{table:#?}");
    terminal.press("/aB");
    let table = terminal.table_with("/: filter: aB");
    let shown: Vec<&String> = table[2..table.len() - 1].iter().collect();
    assert_eq!(
        shown.len(),
        2,
        "those with ab, in large and small: {table:#?}"
    );
    terminal.press(" ");
    let held = terminal.table_with("paused");
    keys.obey("hit 7 ab");
    for _ in 0..5 {
        assert_eq!(terminal.table_with("paused")[..2], held[..2]);
    }
    terminal.press(" ");
    terminal.table(|table| {
        let line = table.iter().find(|line| line.starts_with("ab "));
        line.is_some_and(|line| line.split_whitespace().nth(3) == Some("307"))
    });
    terminal.press("q");
    let (after, ended) = terminal.finish();
    ended.success();
    assert!(after.contains("607 events, 0 lost ]"), "{after}");
    assert!(!after.contains("q: quit"), "{after}");
    let modes = fs::read_to_string(lab.file("modes")).expect("modes");
    let words: Vec<&str> = modes.split_whitespace().collect();
    assert!(
        words.contains(&"icanon") && words.contains(&"echo"),
        "{modes}"
    );
}

/// Whatever signal ends it, the main screen is shown and the keyboard is as before. Ctrl-Z has no effect where no shell could continue it, as the kernel decides;
/// and after SIGSTOP, when a shell has shown its screen and set its modes, all is set again.
#[test]
fn signals_leave_the_terminal_as_it_was() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    for name in ["HUP", "QUIT", "TERM", "ABRT", "SEGV", "64"] {
        // In a session without a shell with job control.
        let command = format!(
            "stty -g >before; sh -c 'echo $$ >pid; exec \"$usdtrec\" top -d 100ms --by t -p {} -e \"{}\"'; stty -g >after",
            keys.pid(),
            keys.event("text(t=str(arg1))")
        );
        let mut terminal = Terminal::start(&lab, 80, &command);
        terminal.table_with("# ");
        keys.obey("hit 3 ab");
        terminal.table_with("ab ");
        let pid = fs::read_to_string(lab.file("pid")).expect("its id");
        let pid = pid.trim().parse().expect("an id");
        signal(pid, "TSTP");
        terminal.table_with("ab ");
        signal(pid, "STOP");
        let mut stty = Command::new("stty");
        let tty = fs::read_to_string(lab.file("tty")).expect("its name");
        stty.args(["-F", tty.trim(), "sane"]);
        run(stty).success();
        signal(pid, "CONT");
        terminal.press("s");
        terminal.table_with("s: sort by total");
        signal(pid, name);
        terminal.finish_again().1.success();
        let modes = |file| fs::read_to_string(lab.file(file)).expect("modes");
        assert_eq!(modes("before"), modes("after"), "SIG{name}");
    }
}

/// Into a pipe, each hit is in one table, with its key, and totals add up.
#[test]
fn top_counts_each_hit_of_a_key_once() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    let (pid, event) = (keys.pid(), keys.event("number(key=arg1)"));
    let common = [
        "top", "-d", "100ms", "-p", &pid, "-e", &event, "--by", "key",
    ];
    let mut top = Process::spawn(lab.command([&common[..], &["--sort", "key"]].concat()));
    top.until_error_line("[ usdtrec top:");
    for _ in 0..3 {
        keys.obey("spread 1000 4");
        while !top.line().expect("tables").starts_with("keys:number") {}
    }
    top.signal("INT");
    let ended = top.finish().success();
    let (mut sums, mut totals) = (BTreeMap::new(), BTreeMap::new());
    for table in ended.stdout.split("\n\n") {
        let rows = table.lines().filter(|line| line.starts_with("keys:number"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
        assert!(rows.is_sorted_by_key(|row| row[1].to_owned()), "{table}");
        for row in rows {
            let number = |place: usize| row[place].parse::<u64>().expect("a number");
            *sums.entry(row[1].to_owned()).or_insert(0) += number(2);
            totals.insert(row[1].to_owned(), number(4));
        }
    }
    let right = ["0", "1", "2", "3"].map(|key| (key.to_owned(), 750));
    assert_eq!(sums, right.into(), "{}", ended.stdout);
    assert_eq!(totals, sums, "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'));
    // So many tables, and the program lives on.
    let shown = lab.usdtrec([&common[..], &["-n", "3"]].concat()).success();
    assert_eq!(
        shown.stdout.matches("Probe ").count(),
        3,
        "{}",
        shown.stdout
    );
    keys.obey("hit 1 x");
}

/// Its keys are those of `stat`: strings of one shape are added up.
#[test]
fn top_has_the_keys_of_stat() {
    let lab = Lab::privileged();
    let mut keys = Keys::start(&lab);
    let (pid, event) = (keys.pid(), keys.event("text(t=str(arg1))"));
    let words = [
        "top",
        "-d",
        "100ms",
        "--by",
        "t:shape,container,unit",
        "-p",
        &pid,
        "-e",
        &event,
    ];
    let mut top = Process::spawn(lab.command(words));
    top.until_error_line("[ usdtrec top:");
    keys.obey("hit 3 id = 17");
    keys.obey("hit 2 id = 4");
    top.signal("INT");
    let shown = top.finish().success().stdout;
    assert!(shown.contains("t:shape"), "{shown}");
    let rows = shown.lines().filter(|line| line.contains("id = ?"));
    let counts = rows.map(|row| {
        let events = row.split_whitespace().rev().nth(2);
        events
            .and_then(|events| events.parse::<u64>().ok())
            .expect("a count")
    });
    assert_eq!(counts.sum::<u64>(), 5, "{shown}");
    assert!(!shown.contains("id = 4"), "{shown}");
}

/// What cannot be counted in the kernel is refused with the reason.
#[test]
fn top_refuses_what_the_kernel_cannot_count() {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let (pid, tick) = (target.pid().to_string(), target.event("tick"));
    let by = |key: &'static str| ["--by", key];
    let cases: [(Vec<&str>, &str); 9] = [
        (by("sym").to_vec(), "--by sym: top --by counts by comm"),
        (by("cpu").to_vec(), "use report --sort cpu"),
        (by("arg1:hex").to_vec(), "use report --sort arg1:hex"),
        (by("arg9").to_vec(), "no probe has an argument arg9"),
        (
            [&by("comm")[..], &["--engine", "perf"]].concat(),
            "top --by needs the bpf engine",
        ),
        (
            [&by("comm")[..], &["-m", "4M"]].concat(),
            "cannot be used with",
        ),
        (
            [&by("comm")[..], &["-d", "1ms"]].concat(),
            "--delay: expected at least 10ms",
        ),
        (vec!["--order", "total"], "were not provided"),
        (
            [&by("comm")[..], &["--sort", "comm"]].concat(),
            "[possible values: rate, p99, max, p50, total, key]",
        ),
    ];
    for (words, reason) in cases {
        let words = [&["top", "-p", &pid, "-e", &tick][..], &words].concat();
        lab.usdtrec(words).exits(2).complains(reason);
    }
}

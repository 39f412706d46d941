//! Texts on a terminal: as wide as it is, different where they differ, and in a pager.

mod pager;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use unicode_width::UnicodeWidthStr as _;

use crate::common::{Lab, need_tool, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// What a shell command prints on a terminal of so many columns and lines; `$usdtrec` is the binary under test.
#[track_caller]
fn on_terminal(lab: &Lab, size: [u32; 2], command: &str) -> String {
    run(terminal(lab, size, command))
        .success()
        .stdout
        .replace('\r', "")
}

/// The same as a command.
#[track_caller]
fn terminal(lab: &Lab, [columns, rows]: [u32; 2], command: &str) -> Command {
    need_tool("script");
    let script = format!("stty cols {columns} rows {rows}; {command}");
    let mut terminal = lab.at_home(
        Path::new("script"),
        ["-q", "-e", "-c", &script, "/dev/null"],
    );
    terminal.env("usdtrec", env!("CARGO_BIN_EXE_usdtrec"));
    terminal.env("NO_COLOR", "1").env("TERM", "xterm");
    // The shell of `script` is that of the user.
    terminal.env("SHELL", "/bin/sh");
    terminal
}

/// The statements of `statements.data`: they differ in the middle and at the end.
fn statements() -> Vec<String> {
    let mut statements = Vec::new();
    for table in ["orders", "orders_of_last_year"] {
        for state in ["open", "paid"] {
            for limit in [5, 50] {
                statements.push(format!(
                    "select count(*), sum(amount) from {table} join customers using (customer) where customers.country = 'DE' \
                     and state = '{state}' group by customers.region order by 2 desc limit {limit}"
                ));
            }
        }
    }
    statements
}

/// Makes `statements.data`, in which each statement is a span of its own.
fn make_trace(lab: &Lab) {
    let mut lines = String::new();
    let mut time = 1_000_000_000_u64;
    for number in 0..160_u64 {
        let statement = &statements()[(number % 8) as usize];
        for (probe, rest) in [("start", 100_000 + number * 1000), ("done", 50_000)] {
            let event = format!(
                "{time}\\t1\\tusdt:/usr/bin/postgres:postgresql:query__{probe}\\t77\\t77\\tpostgres\\tquery:s={statement}\\n"
            );
            let _ = writeln!(lines, "{{\"type\": \"printf\", \"data\": \"{event}\"}}");
            time += rest;
        }
    }
    fs::write(lab.file("statements.json"), lines).expect("a file");
    lab.usdtrec(["import", "statements.json", "-o", "statements.data"])
        .success();
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.width()).max().unwrap_or(0)
}

/// The names of the groups, which begin as statements do.
fn groups(text: &str) -> Vec<&str> {
    let lines = text.lines().take_while(|line| !line.starts_with("Slowest"));
    let lines = lines.filter(|line| line.starts_with("select"));
    lines
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect()
}

#[test]
fn rows_of_different_statements_differ_at_any_width() {
    let lab = Lab::new();
    make_trace(&lab);
    let report = [
        "report",
        "-i",
        "statements.data",
        "--span",
        "query",
        "--by",
        "query",
    ];
    for columns in [80, 120, 200] {
        let command = format!("$usdtrec {} --no-pager", report.join(" "));
        let seen = on_terminal(&lab, [columns, 300], &command);
        assert!(widest(&seen) <= columns as usize, "{seen}");
        let names = groups(&seen);
        let different: BTreeSet<&&str> = names.iter().collect();
        assert_eq!((names.len(), different.len()), (8, 8), "{seen}");
        // As much as has room.
        assert!(
            names
                .iter()
                .all(|name| name.width() + 3 >= columns as usize || !name.contains('…'))
        );
        let width = columns.to_string();
        let asked = [&report[..], &["--width", &width]].concat();
        assert_eq!(lab.usdtrec(asked).success().stdout, seen, "--width");
        let mut of_environment = lab.command(report);
        of_environment.env("COLUMNS", columns.to_string());
        assert_eq!(run(of_environment).success().stdout, seen, "COLUMNS");
    }
    let piped = lab.usdtrec(report).success().stdout;
    let of_80 = lab.usdtrec([&report[..], &["--width", "80"]].concat());
    assert_eq!(piped, of_80.success().stdout, "80 columns in a pipe");
    let whole = lab.usdtrec([&report[..], &["--width", "400"]].concat());
    let whole = whole.success().stdout;
    let mut names = groups(&whole);
    names.sort_unstable();
    let mut expected = statements();
    expected.sort();
    assert_eq!(names, expected);
}

/// The table of arguments, and the comparison of two traces.
#[test]
fn values_beside_names_differ() {
    let lab = Lab::new();
    make_trace(&lab);
    let report = lab
        .usdtrec(["report", "-i", "statements.data"])
        .success()
        .stdout;
    let (_, of_start) = report
        .split_once("query__start.query")
        .expect("the argument");
    let (of_start, _) = of_start
        .split_once("query__done.query")
        .expect("the next one");
    let joined: Vec<&str> = of_start.split_whitespace().collect();
    let joined = joined.join(" ");
    let values: Vec<&str> = joined.split("% \"").skip(1).collect();
    let different: BTreeSet<&str> = values
        .iter()
        .map(|value| value.split('"').next().unwrap_or(value))
        .collect();
    assert_eq!((values.len(), different.len()), (4, 4), "{report}");
    let diff = [
        "diff",
        "statements.data",
        "statements.data",
        "--all",
        "--by",
        "query",
    ];
    for columns in [80, 200] {
        let width = columns.to_string();
        let shown = lab
            .usdtrec([&diff[..], &["--width", &width]].concat())
            .success()
            .stdout;
        let names = shown
            .lines()
            .filter(|line| line.starts_with("postgresql:query  s"));
        // Figures follow in the same line, or in the next one.
        let name = |line: &'_ str| {
            let figures = line.find(" count ").or(line.find(" max "));
            line[..figures.unwrap_or(line.len())].trim_end().to_owned()
        };
        let names: BTreeSet<String> = names.map(name).collect();
        assert_eq!(names.len(), 8, "{shown}");
        assert!(names.iter().all(|name| name.width() <= columns), "{shown}");
    }
}

/// Without a pager, the slowest spans have the lines that the tables leave.
#[test]
fn the_slowest_spans_leave_the_table_on_the_screen() {
    let lab = Lab::new();
    make_trace(&lab);
    let report = "$usdtrec report -i statements.data --span query --no-pager --by";
    let seen = on_terminal(&lab, [200, 40], &format!("{report} query"));
    assert!(seen.lines().count() < 40, "{seen}");
    assert!(
        seen.contains("Slowest query") && seen.contains(" more (--top)"),
        "{seen}"
    );
    // A screen that has no room for the table has none for the slowest either.
    let seen = on_terminal(&lab, [200, 20], &format!("{report} query"));
    let (_, rest) = seen.split_once("Slowest query\n").expect("the heading");
    assert_eq!(rest, "      10 more (--top)\n");
    let all = on_terminal(&lab, [200, 20], &format!("{report} query --top 10"));
    let (_, rest) = all.split_once("Slowest query\n").expect("the heading");
    assert!(
        rest.lines().count() >= 10 && !rest.contains(" more ("),
        "{all}"
    );
    let piped = lab
        .usdtrec(["report", "-i", DEMO, "--span", "request"])
        .success();
    assert!(!piped.stdout.contains(" more ("), "{}", piped.stdout);
}

#[test]
fn a_width_without_effect_is_refused() {
    let lab = Lab::new();
    for (arguments, message) in [
        (
            &["report", "-i", DEMO, "--format", "json"][..],
            "cannot be used with '--format json'",
        ),
        (
            &["report", "-i", DEMO, "--sort", "pid"],
            "--width has no effect on --sort",
        ),
        (
            &["diff", DEMO, DEMO, "--format", "csv"],
            "cannot be used with '--format csv'",
        ),
        (&["list", "--file", "/bin/true"], "<--all|--verbose>"),
        (
            &["list", "-v", "--file", "/bin/true", "--format", "json"],
            "cannot be used with '--format json'",
        ),
    ] {
        let refused = lab.usdtrec([arguments, &["--width", "100"]].concat());
        assert_ne!(refused.status.code(), Some(0));
        refused.complains(message);
    }
    lab.usdtrec(["report", "-i", DEMO, "--width", "12"])
        .exits(2)
        .complains("--width");
}

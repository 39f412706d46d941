//! `stat --by stack`: what the kernel counts by stack is what the program did, and what `report` has of a recording of the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, Recorder, test};

/// With frame pointers, so that all callers of the program itself are found.
const FRAMED: Build = Build {
    compiler: "gcc",
    options: &[
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ],
};

/// A program that hits its probe below different functions when it is told to.
struct Paths {
    process: Process,
    program: PathBuf,
    pid: String,
}

impl Paths {
    fn start(lab: &Lab, build: &Build, arguments: &[&str]) -> Self {
        let program = build.make(lab, "paths.c", "paths");
        let mut command = Command::new(&program);
        command.args(arguments);
        let process = Process::spawn(command);
        let pid = process.pid().to_string();
        Self {
            process,
            program,
            pid,
        }
    }

    fn event(&self) -> String {
        event(&self.program)
    }

    /// The hits of each path, as the program prints them.
    fn hit(&mut self) -> BTreeMap<String, u64> {
        self.process.say("go");
        let mut paths = BTreeMap::new();
        loop {
            let line = self.process.line().expect("a line");
            if line == "done" {
                return paths;
            }
            let (path, count) = line.rsplit_once(' ').expect("a count");
            paths.insert(path.to_owned(), count.parse().expect("a number"));
        }
    }
}

fn event(program: &Path) -> String {
    format!(
        "sdt_paths:hit(number=arg1,text=str(arg2))@{}",
        program.display()
    )
}

fn start(lab: &Lab, arguments: &[&str]) -> Process {
    let words = ["stat", "--format", "json"].iter().chain(arguments);
    let mut stat = Process::spawn(lab.command(words));
    stat.until_error_line("[ usdtrec stat:");
    stat
}

fn end(stat: Process) -> Vec<Value> {
    stat.signal("INT");
    lines(&stat.finish().success().complains(" 0 lost").stdout)
}

fn lines(json: &str) -> Vec<Value> {
    let lines = json.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The counts of stacks. None is counted elsewhere.
fn counts(lines: &[Value]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in lines.iter().filter(|line| line["count"] != 0) {
        let stack = line["stack"].as_str().expect("a stack").to_owned();
        *counts.entry(stack).or_insert(0) += line["count"].as_u64().expect("a count");
    }
    counts
}

/// The counts from `main` on: what calls it is the C library's.
fn from_main(counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let from = |stack: &str| {
        let main = stack.find("main;run").expect("main");
        stack[main..].to_owned()
    };
    let counts = counts.iter();
    counts.map(|(stack, count)| (from(stack), *count)).collect()
}

/// The lines of `export --to folded`.
fn folded(lab: &Lab, trace: &str) -> BTreeMap<String, u64> {
    let report = lab
        .usdtrec(["export", "-i", trace, "--to", "folded", "-o", "-"])
        .success();
    let lines = report.stdout.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        (stack.to_owned(), count.parse().expect("a number"))
    });
    lines.collect()
}

/// A process and its children, which end long before the names are looked for; once, and in intervals.
#[test]
fn stacks_are_those_of_report_and_of_the_program() {
    for engine in ["bpf-multi", "bpf-perf"] {
        let lab = Lab::privileged();
        let mut paths = Paths::start(&lab, &FRAMED, &["40", "5"]);
        let event = paths.event();
        let what = ["--engine", engine, "-p", &paths.pid, "-e", &event];
        let once = start(&lab, &[&what[..], &["--by", "stack"]].concat());
        let often = start(
            &lab,
            &[&what[..], &["--by", "stack", "-I", "50ms"]].concat(),
        );
        let how = ["--call-graph", "fp", "-o", "trace"];
        let recorder = Recorder::start(&lab, [&what[..], &how].concat());
        let printed = paths.hit();
        let (once, often) = (counts(&end(once)), counts(&end(often)));
        recorder.stop().complains(" 0 lost");
        assert_eq!(once, folded(&lab, "trace"), "{engine}");
        assert_eq!(often, once, "{engine}");
        assert_eq!(from_main(&once), printed, "{engine}");
    }
}

/// Other keys beside the stack, and numbers of its hits.
#[test]
fn stacks_with_other_keys_and_numbers() {
    let lab = Lab::privileged();
    let mut paths = Paths::start(&lab, &FRAMED, &["40", "0"]);
    let event = paths.event();
    let how = ["--by", "text,stack,comm", "--hist", "number"];
    let stat = start(
        &lab,
        &[&["-p", &paths.pid, "-e", &event], &how[..]].concat(),
    );
    paths.hit();
    let lines = end(stat);
    let groups = lines.iter().filter(|line| line["count"] != 0);
    let groups = groups.map(|line| {
        let stack = line["stack"].as_str().expect("a stack");
        let leaf = stack.split(';').next_back().expect("a frame");
        assert_eq!(line["comm"], "paths");
        assert_eq!(line["number.min"], 0, "{line}");
        let word = |name: &str| line[name].to_string();
        let text = line["text"].as_str().expect("a text");
        assert!(stack.contains(text), "{line}");
        let numbers = ["count", "number.count", "number.sum", "number.max"].map(word);
        (text.to_owned(), leaf.to_owned(), numbers.join(" "))
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort();
    let group = |text: &str, leaf: &str, numbers: &str| {
        (text.to_owned(), leaf.to_owned(), numbers.to_owned())
    };
    assert_eq!(
        groups,
        [
            group("alone", "alone", "120 120 7140 119"),
            group("left", "shared", "40 40 780 39"),
            group("right", "shared", "80 80 1560 39"),
        ]
    );
}

/// More different stacks than there is room for: those of 32,768 ways through two calls have the same names, and are one row. The rest are others.
#[test]
fn stacks_without_room_are_others() {
    let lab = Lab::privileged();
    let program = FRAMED.make(&lab, "paths.c", "paths");
    let event = event(&program);
    let mut stat = lab.command(["stat", "--format", "json", "--by", "stack", "-e", &event]);
    stat.arg("--").arg(&program).args(["tree", "15"]);
    let mut stat = Process::spawn(stat);
    stat.say("go");
    let lines = lines(&stat.finish().success().stdout);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let (others, known): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line["others"] == true);
    let count = |line: &Value| line["count"].as_u64().expect("a count");
    assert_eq!(count(others[0]) + count(known[0]), 32_768, "{lines:?}");
    assert!(count(known[0]) > 10_000, "{lines:?}");
    let stack = known[0]["stack"].as_str().expect("a stack");
    assert!(stack.ends_with("tree;tree;tree"), "{stack}");
    assert_eq!(stack.matches("tree").count(), 16, "{stack}");
}

/// Without frame pointers the stack says where it ends, and nothing is invented; a table has a short chain.
#[test]
fn cut_stacks_say_so() {
    let lab = Lab::privileged();
    for build in [Build::USUAL, FRAMED] {
        let program = build.make(&lab, "paths.c", "paths");
        let event = event(&program);
        let what = ["stat", "--by", "stack", "-e", &event, "--"];
        let mut stat = lab.command(what);
        stat.arg(&program).args(["tree", "40", "1"]);
        let mut stat = Process::spawn(stat);
        stat.say("go");
        let table = stat.finish().success().stdout;
        if build == FRAMED {
            assert!(table.contains("tree <- tree <- "), "{table}");
            assert!(table.contains(" more"), "{table}");
        } else {
            assert!(table.contains("tree"), "{table}");
        }
    }
    let mut top = lab.command(["top", "--by", "stack", "-n", "1", "-d", "300ms", "-e"]);
    let program = FRAMED.make(&lab, "paths.c", "paths");
    top.arg(event(&program)).arg("--").arg(&program);
    top.args(["10", "0"]);
    let mut top = Process::spawn(top);
    top.say("go");
    let table = top.finish().success().stdout;
    assert!(
        table.contains("shared <- left <- both <- run <- main"),
        "{table}"
    );
}

/// A file that is found while it runs: its stacks have names, too.
#[test]
fn stacks_of_later_files_have_names() {
    let lab = Lab::privileged();
    let build = Build {
        options: &[
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-DPROVIDER=later_paths",
        ],
        ..FRAMED
    };
    let program = build.make(&lab, "paths.c", "paths");
    let mut stat = start(
        &lab,
        &["-a", "--by", "stack", "-I", "50ms", "-e", "later_paths:hit"],
    );
    let mut process = Process::spawn({
        let mut command = Command::new(&program);
        command.args(["10", "1"]);
        command
    });
    // A probe has a row as soon as it is planted.
    stat.line().expect("an interval");
    process.say("go");
    while process.line().expect("a line") != "done" {}
    let lines = end(stat);
    let counts = from_main(&counts(&lines));
    assert_eq!(counts["main;run;both;left;shared"], 20, "{counts:?}");
    assert_eq!(counts["main;run;alone"], 60, "{counts:?}");
}

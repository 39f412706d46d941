//! `stat --value` and `--hist`: what the kernel adds up is what the program passed, and what `report` has of a recording of the same run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder, test};

/// The fields of a line of CSV, by their columns.
type Line = BTreeMap<String, String>;

fn event(provider: &str, name: &str, program: &Path) -> String {
    format!("sdt_{provider}:{name}@{}", program.display())
}

/// The lines of CSV without quotes.
fn table(csv: &str) -> Vec<Line> {
    let mut lines = csv.lines();
    let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), heading.len(), "{csv}");
        let cells = heading.iter().zip(cells);
        cells
            .map(|(name, cell)| ((*name).to_owned(), cell.to_owned()))
            .collect()
    };
    lines.map(line).collect()
}

fn number(line: &Line, column: &str) -> i128 {
    let cell = line
        .get(column)
        .unwrap_or_else(|| panic!("no {column} in {line:?}"));
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} of {line:?}"))
}

/// A program that hits probes when it is told to.
struct Numbers {
    process: Process,
    program: std::path::PathBuf,
    pid: String,
}

impl Numbers {
    fn start(lab: &Lab, arguments: [&str; 2]) -> Self {
        let program = Build::USUAL.make(lab, "numbers.c", "numbers");
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

    fn event(&self, name: &str) -> String {
        event("numbers", name, &self.program)
    }

    fn hit(&mut self) {
        self.process.say("go");
        assert_eq!(self.process.line().as_deref(), Some("done"));
    }
}

fn start(lab: &Lab, arguments: &[&str]) -> Process {
    let words = ["stat", "--format", "csv-raw"].iter().chain(arguments);
    let mut stat = Process::spawn(lab.command(words));
    stat.until_error_line("[ usdtrec stat:");
    stat
}

fn end(stat: Process) -> Vec<Line> {
    stat.signal("INT");
    table(&stat.finish().success().stdout)
}

const MIXED: &str = "mixed(thread=arg1,wide=arg2,upper=arg3,word=arg4,byte=arg5,half=arg6)";
const MEMORY: &str = "memory(thread=arg1,value=*(s64*)arg2)";

/// Threads on all CPUs, with numbers of all sizes, some of which cannot be read: counted while they are recorded.
#[test]
fn numbers_are_those_of_report() {
    for engine in ["bpf-multi", "bpf-perf"] {
        let lab = Lab::privileged();
        let mut numbers = Numbers::start(&lab, ["3000", "4"]);
        let (mixed, memory) = (numbers.event(MIXED), numbers.event(MEMORY));
        let what = [
            "--engine",
            engine,
            "-p",
            &numbers.pid,
            "-e",
            &mixed,
            "-e",
            &memory,
        ];
        let how = [
            "--by",
            "thread",
            "--value",
            "wide,upper",
            "--hist",
            "word,byte,half,value",
        ];
        let stat = start(&lab, &[&what[..], &how].concat());
        let recorder = Recorder::start(&lab, [&what[..], &["-o", "trace"]].concat());
        numbers.hit();
        let lines = end(stat);
        recorder.stop();
        assert_eq!(lines.len(), 8, "{lines:?}");
        for name in ["wide", "upper", "word", "byte", "half", "value"] {
            let event = if name == "value" {
                "numbers:memory"
            } else {
                "numbers:mixed"
            };
            let words = ["report", "-i", "trace", "--format", "csv-raw", "-e", event];
            let how = ["--sort", "thread", "--value", name];
            let report = lab.usdtrec(words.iter().chain(&how)).success();
            let groups = table(&report.stdout);
            assert_eq!(groups.len(), 4, "{groups:?}");
            for group in groups {
                let is_same = |line: &&Line| {
                    line["event"] == format!("sdt_{event}") && line["thread"] == group["thread"]
                };
                let line = lines.iter().find(is_same).expect("the group");
                assert_eq!(line["count"], group["samples"]);
                compare(name, line, &group);
            }
        }
        let known = lines
            .iter()
            .filter(|line| line["event"] == "sdt_numbers:memory");
        let known = known.map(|line| number(line, "value.count"));
        assert_eq!(known.collect::<Vec<_>>(), [2000; 4]);
    }
}

/// Compares a line of `stat` with the group of a report: all that is not marked is equal to the digit.
fn compare(name: &str, line: &Line, group: &Line) {
    for figure in ["count", "sum", "mean", "min", "max"] {
        let column = format!("{name}.{figure}");
        assert_eq!(line[&column], group[&column], "{column}: {line:?}");
    }
    for figure in ["p50", "p90", "p99"] {
        let column = format!("{name}.{figure}");
        if !line.contains_key(&column) {
            continue;
        }
        let (near, right) = (number(line, &column), number(group, &column));
        let exact = line[&format!("{name}.exact")] == "true";
        let most = if exact {
            0
        } else {
            right.abs() / 64 + right.abs() / 256
        };
        assert!((near - right).abs() <= most, "{column}: {near}, {right}");
    }
}

/// Constants of the note, which programs do not read.
#[test]
fn constants_are_added_up() {
    let lab = Lab::privileged();
    let mut numbers = Numbers::start(&lab, ["500", "2"]);
    let constant = numbers.event("constant");
    let how = [
        "-p",
        &numbers.pid,
        "-e",
        &constant,
        "--value",
        "arg1",
        "--hist",
        "arg2",
    ];
    let stat = start(&lab, &how);
    numbers.hit();
    let lines = end(stat);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let right = [
        ("count", 1000),
        ("arg1.count", 1000),
        ("arg1.sum", -1_000_000),
        ("arg1.min", -1000),
        ("arg1.max", -1000),
        ("arg2.sum", 70_000_000),
        ("arg2.p50", 70_000),
    ];
    for (column, right) in right {
        assert_eq!(number(&lines[0], column), right, "{column}");
    }
}

/// Each number is in one interval, and extremes are those of the interval.
#[test]
fn intervals_add_up_to_the_whole() {
    let lab = Lab::privileged();
    let mut numbers = Numbers::start(&lab, ["20000", "2"]);
    let mixed = numbers.event(MIXED);
    let what = [
        "-p",
        &numbers.pid,
        "-e",
        &mixed,
        "--by",
        "thread",
        "--value",
        "wide",
        "--hist",
        "byte",
    ];
    let once = start(&lab, &what);
    let often = start(&lab, &[&what[..], &["-I", "20"]].concat());
    numbers.hit();
    let (once, often) = (end(once), end(often));
    let threads = once.iter().filter(|line| !line["thread"].is_empty());
    for whole in threads {
        let parts = often
            .iter()
            .filter(|part| part["thread"] == whole["thread"]);
        let parts: Vec<&Line> = parts.filter(|part| part["wide.count"] != "0").collect();
        assert!(parts.len() > 1, "{often:?}");
        let sum = |column: &str| parts.iter().map(|part| number(part, column)).sum::<i128>();
        for column in ["count", "wide.count", "wide.sum", "byte.sum"] {
            assert_eq!(sum(column), number(whole, column), "{column}: {parts:?}");
        }
        let known = |column| {
            let known = parts.iter().filter(move |part| !part[column].is_empty());
            known.map(move |part| number(part, column))
        };
        assert_eq!(known("wide.min").min(), Some(number(whole, "wide.min")));
        assert_eq!(known("wide.max").max(), Some(number(whole, "wide.max")));
    }
}

/// Two threads on two CPUs change one group at a time: nothing is lost.
#[test]
fn numbers_are_exact_under_load() {
    const HITS: i128 = 300_000;
    let lab = Lab::privileged();
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = event("hot", "req(id=arg1,bytes=arg2)", &hot);
    let words = [
        "stat", "-x,", "--value", "id", "--hist", "bytes", "-e", &event, "--",
    ];
    let mut stat = lab.command(words);
    stat.arg(&hot).args([&HITS.to_string(), "2"]);
    let mut stat = Process::spawn(stat);
    stat.say("go");
    let ended = stat.finish().success();
    assert!(!ended.stderr.contains("may be wrong"), "{}", ended.stderr);
    let lines = table(&ended.stdout);
    let sum = HITS * (HITS - 1);
    let right = [
        ("count", 2 * HITS),
        ("id.count", 2 * HITS),
        ("id.sum", sum),
        ("id.min", 0),
        ("id.max", HITS - 1),
        ("bytes.sum", 3 * sum),
        ("bytes.max", 3 * (HITS - 1)),
    ];
    for (column, right) in right {
        assert_eq!(number(&lines[0], column), right, "{column}");
    }
}

/// Of more groups than have room for a histogram, the numbers are not known; all hits are counted.
#[test]
fn groups_without_room_have_no_numbers() {
    let lab = Lab::privileged();
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = event("hot", "req(id=arg1,bytes=arg2)", &hot);
    let words = [
        "stat", "-x,", "--by", "id", "--hist", "bytes", "-e", &event, "--",
    ];
    let mut stat = lab.command(words);
    stat.arg(&hot).arg("4000");
    let mut stat = Process::spawn(stat);
    stat.say("go");
    let lines = table(&stat.finish().success().stdout);
    assert_eq!(lines.len(), 4000);
    let (known, unknown): (Vec<&Line>, Vec<&Line>) = lines
        .iter()
        .filter(|line| line["others"].is_empty())
        .partition(|line| !line["bytes.count"].is_empty());
    assert!(
        known.len() >= 1000 && unknown.len() >= 1000,
        "{}",
        known.len()
    );
    for line in known {
        assert_eq!(number(line, "bytes.sum"), 3 * number(line, "id"));
        assert_eq!(number(line, "bytes.p99"), 3 * number(line, "id"));
    }
    for line in unknown {
        assert_eq!((number(line, "count"), &*line["bytes.sum"]), (1, ""));
    }
}

/// What cannot be added up is refused by name.
#[test]
fn what_is_no_integer_is_refused() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "preempted.c", "preempted");
    let odd = event("preempted", "odd(text=str(arg1),value=arg2)", &program);
    let cases = [
        (
            "text",
            "text of sdt_preempted:odd is a string: expected an integer",
        ),
        (
            "nothing",
            "no probe has an argument nothing; they have: text, value",
        ),
    ];
    for option in ["--value", "--hist"] {
        for (name, reason) in cases {
            let words = ["stat", "-e", &odd, option, name, "--", "true"];
            lab.usdtrec(words).exits(2).complains(reason);
        }
    }
    // In a register, and in memory.
    let floats = Build::USUAL.make(&lab, "floats.c", "floats");
    let event = event("floats", "hit", &floats);
    for name in ["arg1", "arg3"] {
        let words = ["stat", "-e", &event, "--value", name, "--", "true"];
        let reason = format!("{name} of sdt_floats:hit is a floating-point number");
        lab.usdtrec(words).exits(2).complains(&reason);
    }
}

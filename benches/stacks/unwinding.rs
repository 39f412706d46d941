//! How fast the copies of stacks in perf's files are unwound, and whether the frames are those that perf finds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ROUNDS;
use crate::common::{Lab, Perf, need_tool};
use crate::cpu_time;
use crate::table::{head, median, row, times};

/// 20000 calls of a function by a function in C, and those of the profile function, without which Python 3.11 has no hits.
const PROGRAM: &str = "
import sys
sys.setprofile(lambda *_: None)
def visit(left):
    return 1 + max(map(visit, [left - 1])) if left else 0
for _ in range(2000):
    visit(9)
";
const PYTHON: &str = "/usr/bin/python3.11";

/// What both are asked.
struct Question {
    ours: &'static [&'static str],
    theirs: &'static [&'static str],
}

const QUESTIONS: [Question; 3] = [
    Question {
        ours: &["script", "--no-inline", "-F", "ip"],
        theirs: &["script", "--no-inline", "-F", "ip"],
    },
    Question {
        ours: &["script", "--no-inline", "-F", "ip,sym,dso"],
        theirs: &["script", "--no-inline", "-F", "ip,sym,dso"],
    },
    Question {
        ours: &["report", "--no-inline", "-g"],
        theirs: &["report", "--no-inline", "--stdio"],
    },
];

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>) {
    need_tool(PYTHON);
    let probes = perf.plant(Path::new(PYTHON), "python", &["function__entry"]);
    let file = lab.file("python.data");
    let recorded = file.to_str().expect("a path in UTF-8");
    let record = [
        "record",
        "-q",
        "-m",
        "64M",
        "-o",
        recorded,
        "--call-graph",
        "dwarf,16384",
    ];
    let command = ["-e", "sdt_python:function__entry", PYTHON, "-c", PROGRAM];
    perf.run([&record[..], &command].concat()).success();
    drop(probes);
    let ours = |words: &[&str]| {
        let mut command = lab.command(words);
        command.arg("-i").arg(&file);
        command
    };
    let theirs = |words: &[&str]| {
        let mut command = Command::new(reader());
        command.args(words).arg("-i").arg(&file);
        command.env("PERF_CONFIG", "/dev/null");
        command
    };
    let mut rounds: [[Vec<f64>; 2]; QUESTIONS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (question, [our, their]) in QUESTIONS.iter().zip(&mut rounds) {
            our.push(cpu_seconds(ours(question.ours)));
            their.push(cpu_seconds(theirs(question.theirs)));
        }
    }
    let frames = ["script", "--no-inline", "-F", "ip"];
    print(
        &file,
        &rounds,
        &stacks(ours(&frames)),
        &stacks(theirs(&frames)),
    );
}

/// The perf that reads: perf 6.1 shows offsets in files where others show addresses, so that its frames cannot be compared.
fn reader() -> OsString {
    std::env::var_os("PERF").unwrap_or_else(|| "perf".into())
}

fn cpu_seconds(mut command: Command) -> f64 {
    let before = cpu_time::of_children();
    let output = command.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(output.status().expect("a program").success());
    cpu_time::of_children() - before
}

/// The stacks of a text of `script -F ip`: addresses line by line, and an empty line after each stack.
fn stacks(mut command: Command) -> Vec<Vec<String>> {
    let output = command.stderr(Stdio::null()).output().expect("a program");
    let text = String::from_utf8_lossy(&output.stdout);
    let stacks = text.split("\n\n").map(|stack| {
        let lines = stack.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    });
    stacks
        .filter(|stack: &Vec<String>| !stack.is_empty())
        .collect()
}

fn print(
    file: &Path,
    rounds: &[[Vec<f64>; 2]; QUESTIONS.len()],
    our: &[Vec<String>],
    their: &[Vec<String>],
) {
    let count = our.len() as f64;
    let frames = our.iter().map(Vec::len).sum::<usize>();
    println!(
        "{} samples of CPython 3.11 with copies of 16 KiB ({:.0} MB) and {:.0} frames each, which perf recorded; CPU time.\n",
        our.len(),
        fs::metadata(file).map_or(0, |metadata| metadata.len()) as f64 / 1e6,
        frames as f64 / count
    );
    head(&[
        "usdtrec",
        "seconds",
        "stacks a second and core",
        "perf",
        "seconds",
        "beside perf",
    ]);
    for (question, [ours, theirs]) in QUESTIONS.iter().zip(rounds) {
        let (ours, theirs) = (median(ours), median(theirs));
        row(&[
            format!("`{}`", question.ours.join(" ")),
            format!("{ours:.3}"),
            format!("{:.0}", count / ours),
            format!("`{}`", question.theirs.join(" ")),
            format!("{theirs:.3}"),
            times(theirs, ours),
        ]);
    }
    println!();
    println!("{}\n", differences(our, their));
}

/// How many frames of perf's are where we have the same, counted from the innermost one.
fn differences(our: &[Vec<String>], their: &[Vec<String>]) -> String {
    let (mut equal, mut all) = (0, 0);
    let mut whole = 0;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (ours, theirs) in our.iter().zip(their) {
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        equal += same;
        all += theirs.len();
        if ours == theirs {
            whole += 1;
        } else {
            let kind = match (same == ours.len(), same == theirs.len()) {
                (_, true) => "perf's ends earlier",
                (true, _) => "ours ends earlier",
                _ => "another frame",
            };
            *kinds.entry(kind).or_default() += 1;
        }
    }
    if equal == 0 {
        return "No frame is the same. Of perf 6.1 none is: it shows offsets in files (`PERF` gives another perf).".to_owned();
    }
    let kinds = kinds
        .iter()
        .map(|(kind, count)| format!("; {kind} in {count}"));
    format!(
        "Of perf's {all} frames, {:.3} % are the same; {whole} of {} stacks are wholly the same{}.",
        equal as f64 / all as f64 * 100.0,
        our.len(),
        kinds.collect::<String>()
    )
}

//! Names of code that a program made at run time, by its jitdump: each from its time on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::callers::folded_lines;
use crate::common::{Build, Lab, Process, run, test, wait_until};
use crate::perf_maps::has_open;

const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-O0", "-fno-omit-frame-pointer", "-Wno-unused-result"],
};

/// A recording of testdata/targets/jitdump.c.
fn recorder(lab: &Lab, arguments: &[&str]) -> std::process::Command {
    let program = BUILD.make(lab, "jitdump.c", "jitdump");
    let event = format!("jitdump:hit@{}", program.display());
    let mut record = lab.command(["record", "--call-graph", "fp", "-o", "trace", "-e", &event]);
    record.arg("--").arg(program).args(arguments);
    record
}

/// How often each function was called, as the program said.
fn said(lines: &[&str]) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for line in lines {
        let (name, times) = line.split_once(' ').expect("a name and a number");
        let times: u64 = times.parse().expect("a number");
        *calls.entry(name.to_owned()).or_default() += times;
    }
    calls
}

/// The hits by the function below that of the hit.
fn found(lab: &Lab) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for (stack, hits) in folded_lines(lab, &[]) {
        let below = stack.strip_suffix(";hit").expect("the function of the hit");
        let (_, name) = below.rsplit_once(';').expect("a caller");
        let name = name.strip_suffix("\\x1b[1m").unwrap_or(name);
        *calls.entry(name.to_owned()).or_default() += hits;
    }
    calls
}

/// An address had two functions, and a function two addresses.
#[test]
fn functions_have_names_from_their_times_on() {
    let lab = Lab::privileged();
    let output = run(recorder(&lab, &["kept"])).success().stdout;
    let lines: Vec<&str> = output.lines().skip(1).collect();
    assert_eq!(lines.len(), 5, "{output}");
    assert_eq!(found(&lab), said(&lines));
    let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert_eq!(script.matches(" second+0x").count(), 8, "{script}");
}

/// What follows is not known.
#[test]
fn a_garbled_dump_names_what_it_named_before() {
    let lab = Lab::privileged();
    let output = run(recorder(&lab, &["garbled"])).success().stdout;
    assert_eq!(output.lines().count(), 6, "{output}");
    let found = found(&lab);
    assert_eq!(found["first"], 12, "{found:?}");
    assert_eq!(found.values().sum::<u64>(), 15, "{found:?}");
}

/// The file that is mapped is read, whatever is at its path.
#[test]
fn a_dump_that_was_removed_is_read() {
    let lab = Lab::privileged();
    for how in ["removed", "replaced"] {
        let mut process = Process::spawn(recorder(&lab, &[how, "wait"]));
        let lines: Vec<String> = (0..6).map(|_| process.line().expect("a line")).collect();
        let dump = format!("/jit-{}.dump (deleted)", lines[0]);
        let is_it = |open: &Path| {
            let open = fs::read_link(open);
            open.is_ok_and(|path| path.to_string_lossy().ends_with(&dump))
        };
        wait_until("opening the dump", || has_open(process.pid(), is_it));
        process.say("end");
        process.finish().success();
        let lines: Vec<&str> = lines.iter().skip(1).map(String::as_str).collect();
        assert_eq!(found(&lab), said(&lines), "{how}");
    }
}

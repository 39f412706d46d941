//! usdtrec's own probes, and the demonstration that records them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Lab, Number, copy_program, events_named, need_tool, run, test};

/// The binary under test, which carries the probes.
const PROGRAM: &str = env!("CARGO_BIN_EXE_usdtrec");

#[test]
fn own_probes_are_where_every_tool_looks() {
    let lab = Lab::new();
    let listed = lab
        .usdtrec(["list", "--file", PROGRAM, "--format", "json"])
        .success()
        .silent();
    let probes: Vec<Value> = listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let expected = [
        ("sdt_usdtrec:gc__done", "1 4 -8 4f"),
        ("sdt_usdtrec:gc__start", "1"),
        ("sdt_usdtrec:request__done", "8 -4 8 8f 1 2"),
        ("sdt_usdtrec:request__start", "8 8 8 8"),
    ];
    assert_eq!(probes.len(), expected.len(), "{}", listed.stdout);
    for (probe, (event, sizes)) in probes.iter().zip(expected) {
        assert_eq!(probe["event"], event);
        for site in probe["sites"].as_array().expect("sites") {
            let operands = site["operands"].as_array().expect("operands");
            let found: Vec<String> = operands.iter().map(size).collect();
            assert_eq!(found.join(" "), sizes, "{event}");
            assert!(operands.iter().all(|operand| operand["kind"] == "reg"));
            // Stock perf takes the one for the other.
            assert_eq!(site["pc"], site["offset"], "{event}");
            assert_ne!(site["semaphore"], "0x0", "{event}");
            assert_ne!(site["base"], "0x0", "{event}");
        }
    }
}

/// An operand's size as a note writes it.
fn size(operand: &Value) -> String {
    let sign = if operand["signed"] == true { "-" } else { "" };
    let float = if operand["float"] == true { "f" } else { "" };
    format!("{sign}{}{float}", operand["size"])
}

#[test]
fn the_workload_prints_what_it_did() {
    let lab = Lab::privileged();
    let events = format!("sdt_usdtrec:*@{PROGRAM}");
    let recorded = lab
        .usdtrec(["record", "-e", &events, "--", PROGRAM, "demo", "--workload"])
        .success()
        .complains("0 lost");
    let requests: usize = recorded
        .stdout
        .strip_suffix(" requests\n")
        .and_then(|number| number.parse().ok())
        .expect("a number of requests");
    let events = lab.events("usdtrec.data");
    let (starts, dones) = (
        events_named(&events, "request__start"),
        events_named(&events, "request__done"),
    );
    assert_eq!((starts.len(), dones.len()), (requests, requests));
    let mut before = 0;
    for ((id, start), done) in (1..).zip(&starts).zip(&dones) {
        assert_eq!((start.integer(1), done.integer(1)), (id, id));
        assert!(start.time_ns < done.time_ns);
        assert!([-104, 200, 404, 500].contains(&done.integer(2)));
        // It sleeps, and what it measures begins after the request before and ends before this one's end.
        let most_ms = (done.time_ns - before) as f64 / 1e6;
        match done.argument(4) {
            Ok(Number::Float(latency)) => {
                assert!((0.4..=most_ms).contains(&latency), "{latency} of {most_ms}");
            }
            other => panic!("latency {other:?}"),
        }
        before = done.time_ns;
        assert_eq!(done.integer(5), id % 4);
        assert!(done.integer(6) <= 1);
    }
    let (starts, dones) = (
        events_named(&events, "gc__start"),
        events_named(&events, "gc__done"),
    );
    assert_eq!((starts.len(), dones.len()), (requests / 50, requests / 50));
    for done in dones {
        assert_eq!(done.integer(3), -64 * done.integer(2));
        assert!(matches!(done.argument(4), Ok(Number::Float(0.25..0.75))));
    }
}

/// Runs the demonstration with a directory for its temporary files, and asserts that it takes away all that it put there.
#[track_caller]
fn demonstrated(lab: &Lab, runner: &[&str]) -> crate::common::Finished {
    let temporary = lab.file("tmp");
    fs::create_dir(&temporary).expect("a directory");
    for directory in [lab.path(), &temporary] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    let program = readable_by_all(lab);
    let mut words: Vec<&Path> = runner.iter().map(Path::new).collect();
    words.extend([program.as_path(), Path::new("demo")]);
    let mut command = lab.at_home(words[0], &words[1..]);
    command.env("TMPDIR", &temporary);
    let finished = run(command).success();
    assert_eq!(fs::read_dir(&temporary).expect("a directory").count(), 0);
    assert!(!lab.cache().exists(), "the user's cache was touched");
    finished
}

/// A copy of the binary under test in the lab.
fn readable_by_all(lab: &Lab) -> PathBuf {
    let program = lab.file("usdtrec");
    copy_program(PROGRAM, &program);
    program
}

#[test]
fn with_privileges_it_records_itself() {
    let lab = Lab::privileged();
    let demo = demonstrated(&lab, &[])
        .complains("4 probes at 4 sites")
        .complains("0 lost");
    for text in [
        "$ usdtrec buildid-cache --add ",
        "$ usdtrec list -v 'sdt_usdtrec:*'",
        "f64 in r",
        "$ usdtrec record -e 'sdt_usdtrec:*' -- ",
        "$ usdtrec script | head -n 12",
        "sdt_usdtrec:request__start: (",
        "$ usdtrec report",
        "usdtrec:gc__done",
    ] {
        assert!(demo.stdout.contains(text), "{text:?} in\n{}", demo.stdout);
    }
    assert!(!demo.stdout.contains("NOT RECORDED"), "{}", demo.stdout);
}

#[test]
fn without_privileges_it_reports_a_bundled_trace() {
    need_tool("setpriv");
    let lab = Lab::privileged();
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let demo = demonstrated(&lab, &nobody);
    for text in [
        "*** NOT RECORDED: recording needs CAP_PERFMON",
        "*** showing a trace that comes with usdtrec",
        "sdt_usdtrec:request__start: (",
        "usdtrec:gc__done",
    ] {
        assert!(demo.stdout.contains(text), "{text:?} in\n{}", demo.stdout);
    }
}

//! What the patterns of `-e` select: files that another one has, too, no stale copies, and what is said of those that select nothing.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Build, Lab, path_text, test};

fn program(lab: &Lab) -> PathBuf {
    Build::USUAL.make(lab, "nested_ops.c", "nested_ops")
}

/// The shortfalls of a trace that are of a kind.
fn shortfalls(lab: &Lab, trace: &str, kind: &str) -> Vec<Value> {
    let report = lab.usdtrec(["report", "-i", trace, "--format", "json"]);
    let report: Value = serde_json::from_str(&report.success().stdout).expect("an object");
    let all = report["shortfalls"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|one| one["kind"] == kind).collect()
}

/// Each of two ways to name one file for the first pattern only.
#[test]
fn a_pattern_without_a_path_is_served_from_the_file_of_another_one() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let path = path_text(&program);
    let begin = format!("nested_ops:op__begin@{path}");
    let list = format!("nested_ops:op__end,nested_ops:op__begin@{path}");
    let command = format!("sleep 0.1; exec {path} 5");
    for patterns in [
        &["-e", &begin, "-e", "nested_ops:op__end"][..],
        &["-e", &list],
        &["-e", "nested_ops:*end", "-e", &begin],
    ] {
        let _ = fs::remove_dir_all(lab.cache());
        let record = ["record", "-o", "trace"];
        let run = ["--", "sh", "-c", &command];
        lab.usdtrec([&record[..], patterns, &run].concat())
            .success();
        let events = lab.events("trace");
        let ends = events
            .iter()
            .filter(|event| event.event.ends_with("op__end"));
        assert_eq!((ends.count(), events.len()), (10, 20), "{patterns:?}");
        assert_eq!(shortfalls(&lab, "trace", "no_probe"), Vec::<Value>::new());
    }
}

#[test]
fn what_selected_nothing_is_named_at_the_end_and_by_reports() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let begin = format!("nested_ops:op__begin@{}", program.display());
    let nothing = ["-e", "nested_nowhere:x", "-e", "nested_noth*:*"];
    let record = ["record", "-o", "trace", "-e", &begin];
    let run = ["--", path_text(&program), "2"];
    let said = lab
        .usdtrec([&record[..], &nothing, &run].concat())
        .success()
        .stderr;
    for pattern in ["nested_nowhere:x", "nested_noth*:*"] {
        let sentence =
            format!("'{pattern}' selected no probe: no file that was read has a matching probe");
        assert_eq!(said.matches(&sentence).count(), 1, "{said}");
        let report = lab.usdtrec(["report", "-i", "trace"]).success().stderr;
        assert_eq!(report.matches(&sentence).count(), 1, "{report}");
    }
    assert!(!said.contains("op__begin' selected"), "{said}");
    assert_eq!(shortfalls(&lab, "trace", "no_probe").len(), 2);
    // Also if there are no events at all.
    let record = [
        "record",
        "-o",
        "none",
        "-e",
        "nested_nowhere:x",
        "--",
        "true",
    ];
    lab.usdtrec(record).success().complains("selected no probe");
    let report = lab.usdtrec(["report", "-i", "none"]).success();
    report.complains("'nested_nowhere:x' selected no probe");
}

/// A file that was recorded by its path and replaced since then.
#[test]
fn an_entry_of_a_file_that_was_replaced_ends_no_recording() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let path = path_text(&program);
    let event = format!("nested_ops:op__end@{path}");
    let record = |trace: &str, event: &str, run: &[&str]| {
        let record = ["record", "-o", trace, "-e", event, "--"];
        let said = lab.usdtrec([&record[..], run].concat()).success().stderr;
        (said, lab.events(trace).len())
    };
    assert_eq!(record("first", &event, &[path, "2"]).1, 4);
    let options: &'static [&'static str] = &["-O0", "-DANEW"];
    let build = Build {
        options,
        ..Build::USUAL
    };
    let anew = build.make(&lab, "nested_ops.c", "anew");
    fs::copy(&anew, lab.file("other")).expect("a copy");
    fs::rename(&anew, &program).expect("a new build");
    let other = path_text(&lab.file("other")).to_owned();
    let (said, hits) = record("direct", "nested_ops:op__end", &[path, "2"]);
    assert_eq!(hits, 4, "{said}");
    assert!(!said.contains("changed since"), "{said}");
    // A child that sleeps first is followed.
    let command = format!("sleep 0.1; exec {other} 400");
    let (said, hits) = record("child", "nested_ops:op__end", &["sh", "-c", &command]);
    assert!(hits > 0, "{said}");
    let waits = [
        "record",
        "-o",
        "waits",
        "-e",
        "nested_ops:op__end",
        "--",
        "true",
    ];
    let waits = lab.usdtrec(waits).success();
    waits.complains("that match 'nested_ops:op__end': waiting");
}

/// A copy that only the cache knows is not attached to where a file that runs has the probes.
#[test]
fn a_glob_attaches_no_copies_that_nobody_runs() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let copy = lab.file("copy");
    fs::copy(&program, &copy).expect("a copy");
    let event = format!("nested_ops:*@{}", copy.display());
    lab.usdtrec([
        "record",
        "-o",
        "first",
        "-e",
        &event,
        "--",
        path_text(&copy),
        "1",
    ])
    .success();
    let record = ["record", "-o", "trace", "-e", "nested_ops:*", "--"];
    lab.usdtrec([&record[..], &[path_text(&program), "3"]].concat())
        .success()
        .complains("2 probes at 2 sites in 1 file");
    assert_eq!(lab.events("trace").len(), 12);
}

/// In a file that comes later, probes that a filter cannot be used for are left out alone; at the start it is an error.
#[test]
fn a_filter_that_does_not_fit_leaves_out_its_probes_alone() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let path = path_text(&program);
    let command = format!("sleep 0.1; exec {path} 700");
    let record = ["record", "-o", "trace", "-e", "nested_ops:op__begin"];
    let filtered = ["-e", "nested_ops:op__end", "--filter", "nosuch == 1"];
    let run = ["--", "sh", "-c", &command];
    let said = lab
        .usdtrec([&record[..], &filtered, &run].concat())
        .success()
        .stderr;
    let events = lab.events("trace");
    assert!(!events.is_empty(), "{said}");
    assert!(
        events
            .iter()
            .all(|event| event.event.ends_with("op__begin"))
    );
    let refused = ": 1 probe not attached: filter of sdt_nested_ops:op__end: ";
    assert!(said.contains(refused), "{said}");
    assert!(said.contains(": attached 1 probe "), "{said}");
    assert!(!said.contains("no breakpoint"), "{said}");
    let unselected = "'nested_ops:op__end' selected no probe: those that match were not attached";
    assert!(said.contains(unselected), "{said}");
    // Of one pattern, too.
    let record = ["record", "-o", "one", "-e", "nested_ops:*"];
    let filter = ["--filter", "arg2 > 3"];
    let said = lab
        .usdtrec([&record[..], &filter, &run].concat())
        .success()
        .stderr;
    assert!(said.contains(refused), "{said}");
    assert!(!lab.events("one").is_empty(), "{said}");
    let at_start = ["--", path, "1"];
    lab.usdtrec([&record[..], &filter, &at_start].concat())
        .exits(2)
        .complains("sdt_nested_ops:op__end has no argument arg2");
}

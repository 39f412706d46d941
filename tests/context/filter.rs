//! `trace --filter` with an argument of another event.

use serde_json::Value;

use crate::common::{Build, Lab, test};

/// What is printed is what `script` selects of a recording.
#[test]
fn trace_selects_by_arguments_of_the_span() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "within.c", "within");
    let event = format!("sdt_within:request__*@{}", program.display());
    let path = program.to_str().expect("a path");
    let filter = ["--filter", "request.arg1 >= 90"];
    let with = ["--with", "request", "--format", "json"];
    let trace = ["trace", "-e", &event];
    let trace = [&trace[..], &filter, &with, &["--", path]].concat();
    let printed = lab.usdtrec(trace).success().complains(" 0 lost").stdout;
    lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", path])
        .success();
    let script = [&["script", "-i", "trace"][..], &filter, &with].concat();
    let selected = lab.usdtrec(script).success().stdout;
    let (printed, selected) = (arguments(&printed), arguments(&selected));
    assert_eq!(printed, selected);
    let done = printed.iter().filter(|(event, _)| event.ends_with("done"));
    let numbers: Vec<i64> = done
        .map(|(_, arguments)| arguments["request.arg1"].as_i64().expect("a number"))
        .collect();
    assert_eq!(numbers, (90..100).collect::<Vec<_>>());
}

/// The names and the arguments of events.
fn arguments(json: &str) -> Vec<(String, Value)> {
    let lines = json.lines().map(|line| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let name = event["event"].as_str().expect("a name").to_owned();
        (name, event["args"].clone())
    });
    lines.collect()
}

/// Without the events that the arguments come from there would be none.
#[test]
fn a_filter_of_one_event_cannot_have_them() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "within.c", "within");
    let path = program.to_str().expect("a path");
    let [start, done] = ["start", "done"].map(|name| format!("sdt_within:request__{name}@{path}"));
    let filter = "request.arg1 >= 90";
    let trace = [
        "trace", "--with", "request", "-e", &start, "-e", &done, "--filter", filter, "--", path,
    ];
    let refused = lab.usdtrec(trace);
    assert_eq!(refused.status.code(), Some(2));
    let said = &refused.stderr;
    assert!(said.contains("give all events in one -e"), "{said}");
}

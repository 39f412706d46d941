//! Requests of one thread that overlap (`testdata/targets/event_loop.c`): by their ids in a file; while they come, it is said that they overlap.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::walk::{Asked, ask, list, number};
use crate::common::{Build, Engine, Lab, run, test};

const ROUNDS: &str = "3000";

fn program(lab: &Lab) -> String {
    let program = Build::USUAL.make(lab, "event_loop.c", "event_loop");
    program.to_str().expect("a path").to_owned()
}

/// Each request has the end with its own id, without being asked for.
#[test]
fn ids_match_requests_of_an_event_loop() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let event = format!("sdt_event_loop:*@{program}");
    let mut arguments = Engine::BpfMulti.record("trace", &event, &[&program, ROUNDS]);
    arguments.splice(1..1, ["-m", "16M"]);
    let recorded = run(lab.command(arguments)).success().complains(" 0 lost");
    let printed = recorded.stdout.lines().count();
    let found = ask(&lab, &["--span", "request"])["spans"][0].clone();
    assert_eq!(
        (&found["key"], &found["agreed"]),
        (&json!("tid"), &json!(["arg1"]))
    );
    assert_eq!(found["count"], printed);
    assert_eq!(
        (&found["open"], &found["unmatched"]),
        (&json!(0), &json!(0))
    );
    let by_id = Asked {
        starts: &["request__start"],
        dones: &["request__done"],
        key: Some("arg1"),
        by: &["arg1"],
    };
    let walk = by_id.walk(&lab.events("trace"));
    let durations: BTreeMap<String, Vec<u64>> = walk.groups;
    let by = ask(
        &lab,
        &["--span", "request", "--by", "arg1", "--top", "100000"],
    );
    let groups = list(&by["spans"][0], "groups");
    assert_eq!(groups.len(), durations.len());
    for group in groups {
        let of = &durations[&Value::Array(vec![group["arg1"].clone()]).to_string()];
        assert_eq!(vec![number(group, "max_ns")], *of, "{group}");
    }
    let script = lab.usdtrec(["script", "-i", "trace", "-F", "+span", "--format", "json"]);
    let sum: u64 = script
        .success()
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).expect("JSON")["span_ns"].as_u64())
        .sum();
    assert_eq!(sum, number(&found, "sum_ns"));
    let text = lab
        .usdtrec(["report", "-i", "trace", "--span", "request"])
        .success();
    assert!(
        text.stdout
            .contains("  matched by thread and arg1: request\n"),
        "{}",
        text.stdout
    );
    let text = lab.usdtrec(["report", "-i", "trace", "--span", "request", "--key", "tid"]);
    let text = text.success().stdout;
    assert!(text.contains("  matched by thread: request\n"), "{text}");
}

/// Verbs that match while requests come do not know what comes later.
#[test]
fn live_verbs_say_that_requests_overlap() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let event = format!("sdt_event_loop:*@{program}");
    let stat = |key: &[&str]| {
        let verb = ["stat", "-e", &event, "--span", "request"];
        let command = ["-o", "out", "--", &program, ROUNDS];
        run(lab.command([&verb[..], key, &command].concat())).success()
    };
    let warning = "older one has the same number: spans overlap there; match them by the argument that identifies them: --key tid,ARG";
    assert!(stat(&[]).stderr.contains(warning), "{}", stat(&[]).stderr);
    let by_id = stat(&["--key", "tid,arg1"]);
    assert!(!by_id.stderr.contains("older"), "{}", by_id.stderr);
    let trace = |least: &[&str]| {
        let verb = ["trace", "-m", "16M", "-e", &event, "--span", "request"];
        let command = ["-o", "out", "--", &program, ROUNDS];
        run(lab.command([&verb[..], least, &command].concat())).success()
    };
    let all = trace(&[]);
    let warning =
        "an older one has the same arg1: --span event_loop:request --key tid,arg1 matches them";
    assert!(all.stderr.contains(warning), "{}", all.stderr);
    let slow = trace(&["--min", "1us"]);
    assert!(
        slow.stderr.contains("an older one has the same"),
        "{}",
        slow.stderr
    );
}

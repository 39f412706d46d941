//! Keys of `stat` that are made outside of the kernel: containers and units of control groups, and shapes of strings.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cgroups::Group;
use crate::common::{Build, Lab, Process, Ticker, test};

/// The counts of groups in the JSON of `stat`, by the values of keys.
fn groups(json: &str, keys: &[&str]) -> BTreeMap<Vec<String>, u64> {
    groups_of(json, keys, "count")
}

/// The same of a report, which calls counts otherwise.
fn groups_of(json: &str, keys: &[&str], count: &str) -> BTreeMap<Vec<String>, u64> {
    let lines = json.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let groups = lines.map(|line| {
        let values = keys.iter().map(|key| match &line[*key] {
            Value::String(string) => string.clone(),
            other => other.to_string(),
        });
        (values.collect(), line[count].as_u64().expect("a count"))
    });
    groups.collect()
}

/// A process that changes its control group, one that came before, and a group that is made while hits are counted.
#[test]
fn containers_and_units() {
    let lab = Lab::privileged();
    let id = "0123456789abcdef".repeat(4);
    let service = Group::new(&lab, "counted.service");
    let mut ticker = Ticker::start(&lab);
    let (pid, tick) = (ticker.pid().to_string(), ticker.event("tick"));
    service.take(ticker.pid());
    let keys = ["container", "unit"];
    let words = [
        "stat",
        "--format",
        "json",
        "--by",
        "container,unit",
        "-p",
        &pid,
        "-e",
        &tick,
    ];
    let mut stat = Process::spawn(lab.command(words));
    stat.until_error_line("[ usdtrec stat:");
    ticker.hit("fire 3");
    let container = Group::new(&lab, &format!("docker-{id}.scope"));
    container.take(ticker.pid());
    ticker.hit("fire 5");
    stat.signal("INT");
    let counted = groups(&stat.finish().success().stdout, &keys);
    // Groups with processes cannot be removed.
    drop(ticker);
    let unit = |group: &Group| {
        let name = group.path.rsplit('/').next();
        name.expect("a name").to_owned()
    };
    let right = [
        (vec!["null".to_owned(), unit(&service)], 3),
        (vec![id, unit(&container)], 5),
    ];
    assert_eq!(counted, right.into());
}

/// Strings that differ in numbers only are one group, and numbers of all are added up.
#[test]
fn shapes_of_strings() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "preempted.c", "preempted");
    let path = program.to_str().expect("a path");
    let odd = format!("sdt_preempted:odd(text=str(arg1),value=arg2)@{path}");
    let words = [
        "stat",
        "--format",
        "json",
        "--by",
        "text:shape",
        "--value",
        "value",
        "-e",
        &odd,
        "--",
        path,
        "6",
        "1000",
    ];
    let json = lab.usdtrec(words).success().stdout;
    let counted = groups(&json, &["text:shape"]);
    assert_eq!(counted, [(vec!["thread ?".to_owned()], 3000)].into());
    let line: Value = serde_json::from_str(&json).expect("a line");
    assert_eq!(line["value.min"], 1_000_000);
    assert_eq!(line["value.max"], 5_000_999);
    let sum: u64 = [1, 3, 5]
        .map(|thread| thread * 1_000_000_000 + 499_500)
        .iter()
        .sum();
    assert_eq!(line["value.sum"], sum);
}

/// The extremes of integers, empty strings, none, and strings that look like none are groups of their own, as in a report.
#[test]
fn extreme_keys() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "extreme_keys.c", "extreme_keys");
    let path = program.to_str().expect("a path");
    let event = format!("sdt_extreme:keys(wide=arg1,upper=arg2,text=str(arg3))@{path}");
    let keys = ["wide", "upper", "text"];
    let by = keys.join(",");
    lab.usdtrec(["record", "-e", &event, "-o", "trace", "--", path])
        .success();
    let report = ["report", "-i", "trace", "--format", "json", "--sort", &by];
    let reported = lab.usdtrec(report).success().stdout;
    let stat = |format| {
        let words = [
            "stat", "--format", format, "--by", &by, "-e", &event, "--", path,
        ];
        lab.usdtrec(words).success().stdout
    };
    let counted = groups(&stat("json"), &keys);
    assert_eq!(counted.len(), 96, "{counted:?}");
    assert!(counted.values().all(|count| *count == 6), "{counted:?}");
    assert_eq!(groups_of(&reported, &keys, "samples"), counted);
    // The empty string is one in CSV, and none is not.
    let csv = stat("csv-raw");
    for (field, lines) in [(",\"\",,6,", 16), (",,,6,", 16), (",NULL,,6,", 16)] {
        let found = csv.lines().filter(|line| line.contains(field)).count();
        assert_eq!(found, lines, "{field} {csv}");
    }
}

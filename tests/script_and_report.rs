//! `script` and `report` on a recording whose events are known.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Event, Lab, Recorder, Ticker, copy_program, test};

/// Two processes' hits: 40 of `ticker`, 25 of `other`, 6 of a thread of `ticker`, 9 of a `guarded` probe.
struct Recorded {
    lab: Lab,
    ticker: u32,
    other: u32,
    events: Vec<Event>,
}

#[track_caller]
fn recorded() -> Recorded {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let copy = lab.file("other");
    copy_program(ticker.program(), &copy);
    let mut other = Ticker::again(&copy);
    let events = [ticker.event("*"), other.event("tick")].join(",");
    let recorder = Recorder::start(&lab, ["-a", "-e", &events]);
    ticker.hit("fire 40");
    other.hit("fire 25");
    ticker.hit("thread 6");
    ticker.tell("guarded 9");
    recorder.stop().complains("80 events");
    let events = lab.events("usdtrec.data");
    assert_eq!(events.len(), 80);
    Recorded {
        lab,
        ticker: ticker.pid(),
        other: other.pid(),
        events,
    }
}

/// Lines of `script` with options.
#[track_caller]
fn lines(lab: &Lab, options: &[&str]) -> Vec<String> {
    let script = lab
        .usdtrec([&["script"], options].concat())
        .success()
        .silent();
    script.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn script_selects() {
    let Recorded {
        lab,
        ticker,
        other,
        events,
    } = recorded();
    let count = |options: &[&str]| lines(&lab, options).len();
    assert_eq!(count(&[]), 80);
    assert_eq!(count(&["--comm", "other"]), 25);
    assert_eq!(count(&["--comm", "other,ticker,worker"]), 80);
    assert_eq!(count(&["--pid", &other.to_string()]), 25);
    assert_eq!(count(&["--tid", &ticker.to_string()]), 49);
    assert_eq!(count(&["-e", "sdt_ticker:guarded"]), 9);
    assert_eq!(count(&["-e", "ticker:g*"]), 9);
    assert_eq!(count(&["--comm", "nobody"]), 0);
    let on_first = events.iter().filter(|event| event.cpu == 0).count();
    assert_eq!(count(&["-C", "0"]), on_first);
    assert_eq!(count(&["-C", "0-1000"]), 80);
}

#[test]
fn script_selects_times() {
    let Recorded { lab, events, .. } = recorded();
    let seconds = |index: usize| {
        let time = events[index].time_ns;
        format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
    };
    let between = |from: &str, to: &str| lines(&lab, &["--time", &format!("{from},{to}")]).len();
    assert_eq!(between(&seconds(10), &seconds(19)), 10);
    assert_eq!(between(&seconds(70), ""), 10);
    assert_eq!(between("", &seconds(9)), 10);
    assert_eq!(between("", ""), 80);
    let all: usize = ["0%-50%", "50%-100%"]
        .iter()
        .map(|share| lines(&lab, &["--time", share]).len())
        .sum();
    assert!(
        (80..=81).contains(&all),
        "two halves have all events: {all}"
    );
}

#[test]
fn script_prints_fields() {
    let Recorded {
        lab,
        events,
        ticker,
        ..
    } = recorded();
    let first = |options: &[&str]| lines(&lab, options)[0].clone();
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(&first(&["-F", "comm,tid"])),
        ["ticker", &ticker.to_string()]
    );
    assert_eq!(first(&["-F", "event"]).trim(), "sdt_ticker:tick:");
    let time = events[0].time_ns;
    let nanoseconds = format!("{}.{:09}:", time / 1_000_000_000, time % 1_000_000_000);
    assert_eq!(first(&["--ns", "-F", "time"]).trim(), nanoseconds);
    assert!(first(&["-F", "args"]).contains(&format!("arg2={ticker}")));
    assert!(!first(&["-F", "-args"]).contains("arg2="));
    assert!(first(&["-F", "+sym"]).contains("tick"));
}

#[test]
fn script_csv_has_a_column_for_each_field() {
    let Recorded { lab, events, .. } = recorded();
    let lines = lines(&lab, &["--format", "csv"]);
    assert_eq!(lines.len(), 81, "a header and 80 events");
    let columns: Vec<&str> = lines[0].split(',').collect();
    let column = |name: &str| {
        columns
            .iter()
            .position(|column| *column == name)
            .unwrap_or_else(|| panic!("{columns:?}"))
    };
    for (line, event) in lines[1..].iter().zip(&events) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), columns.len(), "{line}");
        assert_eq!(cells[column("time_ns")], event.time_ns.to_string());
        assert_eq!(cells[column("event")], event.event);
        assert_eq!(cells[column("arg1")], event.integer(1).to_string());
    }
}

/// The report's first table: each probe with its events, and the processes.
#[test]
fn report_answers_first() {
    let Recorded { lab, .. } = recorded();
    let report = lab.usdtrec(["report"]).success().silent().stdout;
    let row = |name: &str| {
        let rows = report.lines().filter(|line| line.contains(name));
        rows.map(str::to_owned)
            .next()
            .unwrap_or_else(|| panic!("{name} in\n{report}"))
    };
    assert!(report.contains("80 events"), "{report}");
    let tick = row("ticker:tick ");
    assert!(
        tick.contains(" 71 ") && tick.contains("88."),
        "count and share: {tick}"
    );
    assert!(row("ticker:guarded ").contains(" 9 "));
    assert!(report.contains("ticker") && report.contains("other"));
}

#[test]
fn report_groups() {
    let Recorded { lab, .. } = recorded();
    let json = lab
        .usdtrec(["report", "--sort", "comm", "-n", "--format", "json"])
        .success()
        .stdout;
    let mut groups = BTreeMap::new();
    for line in json.lines() {
        let group: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        if let (Some(comm), Some(count)) = (group["comm"].as_str(), group["samples"].as_u64()) {
            *groups.entry(comm.to_owned()).or_insert(0) += count;
        }
    }
    let expected = [("other", 25), ("ticker", 49), ("worker", 6)]
        .map(|(comm, count)| (comm.to_owned(), count));
    assert_eq!(groups, BTreeMap::from(expected), "{json}");
    let csv = lab
        .usdtrec(["report", "--sort", "comm", "--format", "csv"])
        .success()
        .stdout;
    assert!(
        csv.lines()
            .any(|line| line.contains("other") && line.contains("25")),
        "{csv}"
    );
    let text = lab
        .usdtrec(["report", "--sort", "comm,tid", "-n", "--stdio"])
        .success()
        .stdout;
    assert!(
        text.lines()
            .any(|line| line.contains("other") && line.contains("25")),
        "{text}"
    );
}

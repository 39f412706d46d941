//! Recordings that begin at a moment, and those of each period.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Build, Lab, Process, Ticker, test, wait_until, within};

/// Names of the files in a lab that begin with `t.data.`, in their order.
fn files(lab: &Lab) -> Vec<String> {
    let names = fs::read_dir(lab.path()).expect("the lab").flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("t.data.")).collect();
    names.sort();
    names
}

#[test]
fn a_command_starts_at_the_moment() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    for (at, waits) in [("+2s", true), ("2026-01-01T00:00:00Z", false)] {
        let words = ["record", "--at", at, "-e", &event, "--", program];
        let finished = lab.usdtrec(words).success().complains(" s after ");
        assert_eq!(
            finished.stderr.contains("recording begins at"),
            waits,
            "{}",
            finished.stderr
        );
        assert_eq!(lab.events("usdtrec.data").len(), 2);
    }
}

#[test]
fn a_signal_ends_waiting() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let words = ["record", "--at", "+1h", "-a", "-e", &tick, "-o", "t.data"];
    let mut process = Process::spawn(lab.command(words));
    process.until_error_line("recording begins at");
    process.signal("INT");
    process.finish().exits(1).complains("interrupted");
    assert!(!lab.file("t.data").exists());
    let words = [
        "record", "--every", "1d/1s", "-a", "-e", &tick, "-o", "t.data",
    ];
    let mut process = Process::spawn(lab.command(words));
    process.until_error_line("recordings begin at");
    process.signal("INT");
    process.finish().success();
    assert_eq!(files(&lab), [""; 0]);
}

/// What cannot be recorded is said at once, not when the moment has come.
#[test]
fn errors_do_not_wait() {
    let lab = Lab::privileged();
    let words = [
        "record",
        "--at",
        "+1h",
        "-a",
        "-e",
        "nothing:here@/bin/true",
    ];
    lab.usdtrec(words).exits(1);
}

#[test]
fn a_file_for_each_period() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let words = [
        "record", "--every", "2s/1s", "-p", &pid, "-e", &tick, "-o", "t.data",
    ];
    let mut process = Process::spawn(lab.command(words));
    process.until_error_line("recordings begin at");
    // On a busy machine a second may pass before the ticker hears of it.
    let mut fired = 0;
    let caught = within(Duration::from_secs(200), || {
        process.until_error_line("[ usdtrec record:");
        fired += ticker.hit("fire 2").len();
        process.until_error_line("recording began");
        let recorded = files(&lab);
        let events = |name: &String| lab.events(name).len();
        recorded.len() > 1 && recorded.iter().map(events).sum::<usize>() > 0
    });
    assert!(caught, "no hit in any of {:?}", files(&lab));
    process.signal("INT");
    process.finish().success();
    wait_until("the end of the last probe", || ticker.semaphores().0 == 0);
    let mut found = 0;
    for name in files(&lab) {
        let stamp = name.strip_prefix("t.data.").expect("a stamp");
        let due = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp).expect("a date");
        assert_eq!(due.second() % 2, 0, "{name}");
        let due = due.to_zoned(jiff::tz::TimeZone::UTC).expect("a date");
        let words = ["script", "--tod", "--format", "json", "-i", &name];
        for line in lab.usdtrec(words).success().stdout.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let tod: jiff::Timestamp = line["tod"].as_str().expect("a time").parse().expect("one");
            assert!(tod >= due.timestamp(), "{tod} in {name}");
            found += 1;
        }
    }
    assert!((1..=fired).contains(&found), "{found} of {fired}");
}

#[test]
fn the_newest_files_are_kept_and_the_end_of_all_processes_ends_it() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let mut words = vec!["record", "--every", "1s/200ms", "--switch-max-files", "2"];
    words.extend(["-p", &pid, "-e", &tick, "-o", "t.data"]);
    let mut process = Process::spawn(lab.command(words));
    for _ in 0..4 {
        process.until_error_line("recording began");
    }
    drop(ticker);
    process.finish().success();
    assert!(files(&lab).len() <= 2, "{:?}", files(&lab));
}

#[test]
fn what_has_no_effect_is_refused() {
    let lab = Lab::new();
    let refused = |words: &[&str], reason: &str| {
        let words = ["record", "-e", "a:b"].iter().chain(words);
        lab.usdtrec(words).exits(2).complains(reason);
    };
    refused(&["-a", "--at", "noon"], "--at: expected a time");
    refused(&["-a", "--every", "10s"], "--every: expected a period");
    refused(&["--every", "10s/1s", "--", "true"], "a command");
    refused(
        &["-a", "--every", "10s/1s", "--duration", "1s"],
        "--duration",
    );
    refused(&["-a", "--every", "10s/1s", "-o", "-"], "-o -");
    refused(
        &["-a", "--every", "10s/1s", "--switch-output"],
        "--switch-output",
    );
    refused(&["-a", "--every", "10s/1s", "--at", "+1s"], "--at");
    refused(
        &["-a", "--switch-max-files", "2"],
        "--switch-max-files needs",
    );
}

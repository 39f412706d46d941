//! Readings of the clocks in recordings.

use std::collections::HashMap;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Lab, Process, Recorder, Ticker, find_tool, need_tool, run, skip, test};

/// What `report` says of a trace's clocks.
#[track_caller]
fn clock(lab: &Lab, trace: &str) -> Value {
    let report = lab.usdtrec(["report", "--format", "json", "-i", trace]);
    let answer: Value = serde_json::from_str(&report.success().stdout).expect("JSON");
    answer["clock"].clone()
}

/// The time of day of each tick, by its counter, ns since 1970.
#[track_caller]
fn wall(lab: &Lab, trace: &str) -> HashMap<u64, i128> {
    let script = lab.usdtrec(["script", "-F", "+tod", "--format", "json", "-i", trace]);
    let lines = script.success().stdout;
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let time: jiff::Timestamp = line["tod"].as_str()?.parse().ok()?;
        let first = line["args"].as_object()?.values().next()?.as_u64()?;
        Some((first, time.as_nanosecond()))
    };
    lines.lines().filter_map(one).collect()
}

#[test]
fn a_recording_has_readings_at_both_ends() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &tick, "-o", "t.data"]);
    ticker.hit("fire 3");
    recorder.stop();
    let found = clock(&lab, "t.data");
    assert_eq!(found["readings"], 2, "{found}");
    assert_eq!(found["steps"], Value::Array(Vec::new()), "{found}");
    assert!(found["error_ns"].as_u64() > Some(0), "{found}");
    assert_eq!(wall(&lab, "t.data").len(), 3);
}

#[test]
fn a_killed_recorder_leaves_its_readings() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &tick, "-o", "t.data"]);
    ticker.hit("fire 3");
    let deadline = Instant::now() + Duration::from_secs(60);
    while lab.events("t.data").len() < 3 && Instant::now() < deadline {
        sleep(Duration::from_millis(50));
    }
    recorder.signal("KILL");
    recorder.finish();
    let found = clock(&lab, "t.data");
    assert_eq!(found["readings"], 1, "{found}");
    assert_eq!(wall(&lab, "t.data").len(), 3);
}

/// A time namespace shifts the clock that a recorder reads, and not the one of the kernel's records. Two recorders, one of them in such a
/// namespace, must give the same time of day to the same hits, up to the errors that they state.
#[test]
fn recorders_in_and_out_of_a_time_namespace_agree() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let mut shifted = Command::new("unshare");
    shifted.args(["-T", "--monotonic", "1000", "true"]);
    if !run(shifted).status.success() {
        skip("this kernel has no time namespaces");
    }
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let here = Recorder::start(&lab, ["-a", "-e", &tick, "-o", "here.data"]);
    let unshare = find_tool("unshare").expect("it is there");
    let binary = env!("CARGO_BIN_EXE_usdtrec");
    let words = ["-T", "--monotonic", "1000", binary, "record", "-a", "-g"];
    let command = lab.at_home(
        &unshare,
        words.iter().chain(&["-e", &tick, "-o", "there.data"]),
    );
    let mut there = Process::spawn(command);
    there.until_error_line("[ usdtrec record:");
    ticker.hit("fire 20");
    here.stop();
    there.signal("INT");
    there.finish().success();
    let stated: u64 = ["here.data", "there.data"]
        .iter()
        .filter_map(|trace| clock(&lab, trace)["error_ns"].as_u64())
        .sum();
    let (here, there) = (wall(&lab, "here.data"), wall(&lab, "there.data"));
    assert_eq!((here.len(), there.len()), (20, 20));
    for (tick, here) in here {
        let apart = here.abs_diff(there[&tick]);
        // Each recorder's program reads the clock for itself, one after the other.
        let between = u128::from(BETWEEN_NS);
        assert!(
            apart <= u128::from(stated) + between,
            "{apart} ns, {stated} stated"
        );
    }
}

/// Maximum time between two programs of one hit, ns. A shift that is missed is a thousand seconds.
const BETWEEN_NS: u64 = 1_000_000_000;

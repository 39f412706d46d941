//! Losses: what the program hit is what was recorded plus what is reported as lost.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Build, Closing, Lab, Process, Recorder, test};

/// Hits as fast as two threads can, into rings of one page.
#[test]
fn every_hit_is_recorded_or_reported_as_lost() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let mut command = Command::new(&program);
    command.args(["300000", "2"]);
    let mut hot = Process::spawn(command);
    let event = format!("sdt_hot:req@{}", program.display());
    let recorder = Recorder::start(&lab, ["-m", "1", "-a", "-o", "trace", "-e", &event]);
    hot.say("go");
    let printed = hot.finish().success().stdout;
    let told = recorder.stop().stderr;
    let hits: u64 = printed
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a count");
    let Closing { events, lost } = Closing::parse(&told);
    assert_eq!(hits, 600_000);
    assert!(lost > 0, "a ring of one page must overflow: {told}");
    assert_eq!(events + lost, hits, "{told}");
    assert_eq!(lab.events("trace").len() as u64, events);
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(
        report.contains(&lost.to_string()),
        "the report tells the loss:\n{report}"
    );
}

/// A recorder that is killed has written what was lost by its last flush.
#[test]
fn a_killed_recording_knows_its_losses() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let run = |hits: &str, threads: &str| {
        let mut command = Command::new(&program);
        command.args([hits, threads]);
        let mut hot = Process::spawn(command);
        hot.say("go");
        hot.finish().success();
    };
    let event = format!("sdt_hot:req@{}", program.display());
    let recorder = Recorder::start(&lab, ["-m", "1", "-a", "-o", "trace", "-e", &event]);
    run("300000", "2");
    let mut hits = 600_000;
    let report = || -> serde_json::Value {
        let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
        serde_json::from_str(&report.success().stdout).expect("JSON")
    };
    // Losses are counted about once a second, and written with the next flush.
    let deadline = Instant::now() + Duration::from_secs(240);
    loop {
        run("1", "1");
        hits += 1;
        let told = report();
        let all = told["events"].as_u64().zip(told["lost"].as_u64());
        let all = all.map(|(events, lost)| events + lost);
        if all.is_some_and(|all| all >= 600_000) {
            break;
        }
        assert!(Instant::now() < deadline, "{hits} hits: {told}");
        std::thread::sleep(Duration::from_millis(100));
    }
    recorder.signal("KILL");
    recorder.finish();
    let told = report();
    let lost = told["lost"].as_u64().expect("known losses");
    assert!(lost > 0, "a ring of one page must overflow: {told}");
    assert!(told["events"].as_u64().unwrap() + lost <= hits, "{told}");
    assert_eq!(told["lost_exact"], false);
    assert_eq!(told["probes"][0]["lost"], lost);
    let text = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(
        text.contains(&format!("{lost} lost up to the last flush")),
        "{text}"
    );
}

/// What is not known is not 0.
#[test]
fn unknown_losses_are_not_zero() {
    let lab = Lab::new();
    let killed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/traces/chunks-killed.data"
    );
    let shown = |arguments: &[&str]| {
        let all = [arguments, &["-i", killed]].concat();
        lab.usdtrec(all).success()
    };
    let text = shown(&["report"]).stdout;
    assert!(text.contains("losses not known"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["report", "--format", "json"]).stdout).expect("JSON");
    for lost in [&json["lost"], &json["probes"][0]["lost"]] {
        assert!(lost.is_null(), "{json}");
    }
    let csv = shown(&["report", "--format", "csv"]).stdout;
    let lost = csv.lines().nth(1).and_then(|line| line.split(',').nth(4));
    assert_eq!(lost, Some(""), "{csv}");
    let line = text.lines().find(|line| line.trim_end().ends_with('?'));
    assert!(line.is_some(), "{text}");
    shown(&["script"]).complains("is not known");
}

/// A stream has both what the rings noticed and what was counted: the same losses, which count once.
#[test]
fn losses_of_a_stream_count_once() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    for engine in ["perf", "bpf"] {
        let mut command = Command::new("sh");
        let script = format!(
            "\"$0\" record --engine {engine} -m 1 -o - -e 'sdt_hot:req@{0}' -- {0} 300000 2 > stream",
            program.display()
        );
        command
            .args(["-c", &script])
            .arg(lab.command([""; 0]).get_program());
        command
            .current_dir(lab.path())
            .env("PERF_BUILDID_DIR", lab.cache());
        let mut recorder = Process::spawn(command);
        recorder.say("go");
        let told = recorder.finish().success().stderr;
        let lost = Closing::parse(&told).lost;
        assert!(lost > 0, "a ring of one page must overflow: {told}");
        let report = lab.usdtrec(["report", "-i", "stream", "--format", "json"]);
        let report: serde_json::Value =
            serde_json::from_str(&report.success().stdout).expect("a report");
        assert_eq!(report["lost"], lost, "{engine}: {told}");
        assert_eq!(report["events"], 600_000 - lost, "{engine}");
    }
}

/// What perf events cannot count is never called exact: not by the recorder, not by readers of the trace.
#[test]
fn what_is_not_exact_is_said() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "children.c", "children");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("children:one@{path}");
    // CPUs on line, whatever share of them a quota leaves to this test.
    let several = std::fs::read_to_string("/sys/devices/system/cpu/online")
        .is_ok_and(|list| list.contains(['-', ',']));
    for (engine, whose, exact) in [
        ("bpf", &["--"][..], true),
        ("perf-tracefs", &["--"], false),
        ("perf", &["-a", "--"], true),
        ("perf-pmu", &["-a", "--"], !several),
    ] {
        let options = ["record", "-o", "trace", "--engine", engine, "-e", &event];
        let recorded = lab
            .usdtrec(options.iter().chain(whose).chain(&[path, "3"]))
            .success();
        let case = format!("{engine} {whose:?}: {}", recorded.stderr);
        assert_eq!(!recorded.stderr.contains("; not exact: "), exact, "{case}");
        let text = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
        let json = ["report", "--format", "json", "-i", "trace"];
        let json = lab.usdtrec(json).success().stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        // On a busy machine a process may end before it was checked, which is said.
        let shortfalls = json["shortfalls"].as_array().expect("a list");
        let is_not_checked = |shortfall: &serde_json::Value| shortfall["kind"] == "not_checked";
        // Inherited events may leave a child without a breakpoint.
        assert!(
            !exact || shortfalls.iter().all(is_not_checked),
            "{case}{text}"
        );
        let exact = exact && shortfalls.is_empty();
        assert_eq!(!text.contains("not exact: "), exact, "{case}{text}");
        assert_eq!(json["lost_exact"], exact, "{case}");
    }
}

/// Whoever looks at all processes has one consumer for a site: no hit counts twice although the thread changes the CPU all the time.
#[test]
fn threads_that_change_the_cpu_count_once() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "migrating.c", "migrating");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("migrating:hit@{path}");
    for engine in ["bpf", "perf"] {
        let options = [
            "record", "-a", "-m", "4M", "-o", "trace", "--engine", engine,
        ];
        let recorded = lab
            .usdtrec(options.iter().chain(&["-e", &event, "--", path, "30000"]))
            .success();
        let Closing { events, lost } = Closing::parse(&recorded.stderr);
        assert_eq!(events + lost, 30_000, "{engine}: {}", recorded.stderr);
    }
}

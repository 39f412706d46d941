//! Several files are one trace, in every reading verb: those of a recording that went on in new files say what one of the same run in a single file
//! does, and what the program printed.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Build, Finished, Lab, Recorder, Ticker, run, test};

/// What a program prints, with so many threads, of the files of a trace.
fn said(lab: &Lab, verb: &str, files: &[&str], options: &[&str], threads: &str) -> Finished {
    let mut command = lab.command([verb]);
    command.arg("-i").args(files).args(options);
    command.env("RAYON_NUM_THREADS", threads);
    run(command)
}

/// JSON without what it says of the files.
fn without_files(json: &str) -> Value {
    let mut answer: Value = serde_json::from_str(json).expect("JSON");
    if let Some(members) = answer.as_object_mut() {
        members.remove("file");
        members.remove("files");
    }
    answer
}

/// Spans that begin in one file and end in another one are whole, however the files are named.
#[test]
fn a_switched_recording_is_one_trace() {
    const REQUESTS: u64 = 20_000;
    let lab = Lab::privileged();
    let program = Build {
        compiler: "gcc",
        options: &["-O2", "-pthread"],
    }
    .make(&lab, "requests.c", "requests");
    let event = format!("sdt_requests:request__*@{}", program.display());
    let count = REQUESTS.to_string();
    let mut command = lab.command(["record", "-m", "32M", "-z=0", "-e", &event]);
    command.args(["-o", "all", "--switch-output=400K", "--"]);
    command.arg(&program).args([&count, "2"]);
    let recorded = run(command).success().complains(" 0 lost");
    assert!(recorded.stdout.contains(&format!("{}", 2 * REQUESTS)));
    let names: Vec<String> = (1..)
        .map(|number| format!("all.{number}"))
        .take_while(|name| lab.file(name).exists())
        .collect();
    assert!(names.len() > 1, "{} files", names.len());
    let in_order: Vec<&str> = names.iter().map(String::as_str).collect();
    let backwards: Vec<&str> = in_order.iter().rev().copied().collect();
    let spans = [
        "--span", "request", "--key", "arg1", "--by", "tid", "--format", "json",
    ];
    let answer = said(&lab, "report", &in_order, &spans, "1")
        .success()
        .stdout;
    let answers: Value = serde_json::from_str(&answer).expect("JSON");
    let span = &answers["spans"][0];
    let all: u64 = span["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["count"].as_u64())
        .sum();
    assert_eq!(all, 2 * REQUESTS, "{answer}");
    assert_eq!(span["open"].as_u64(), Some(0), "{answer}");
    std::fs::create_dir(lab.file("folder")).expect("a new directory");
    for name in &names {
        std::fs::copy(lab.file(name), lab.file("folder").join(name)).expect("a copy");
    }
    for (files, threads) in [(&backwards[..], "2"), (&["all.*"], "7"), (&["folder"], "2")] {
        assert_eq!(
            said(&lab, "report", files, &spans, threads)
                .success()
                .stdout,
            answer,
            "{files:?}"
        );
    }
    // Each file alone has its part of the lines.
    let lines = |files: &[&str]| said(&lab, "script", files, &[], "2").success().stdout;
    let apart: usize = in_order
        .iter()
        .map(|name| lines(&[name]).lines().count())
        .sum();
    let together = lines(&in_order);
    assert_eq!(together.lines().count(), apart);
    assert_eq!(together.lines().count() as u64, 4 * REQUESTS);
    let comms = ["--sort", "comm,pid", "--format", "json"];
    let groups = said(&lab, "report", &in_order, &comms, "2")
        .success()
        .stdout;
    assert_eq!(groups.lines().count(), 2, "one process: {groups}");
    let export = ["--to", "perfetto", "-o", "all.pftrace"];
    said(&lab, "export", &in_order, &export, "2").success();
    // The other side may be several files, too.
    let diff = lab.usdtrec(["diff", "all.1", "all.*", "--format", "json"]);
    diff.success();
}

/// What happened to processes is as in a recording beside it that wrote one file.
#[test]
fn files_and_a_single_file_of_the_same_run_agree() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let event = ticker.event("tick");
    let single = Recorder::start(&lab, ["-a", "-e", &event, "-o", "single"]);
    let switched = ["-a", "-e", &event, "-o", "part", "--switch-output"];
    let switched = Recorder::start(&lab, switched);
    for number in 2..=4 {
        ticker.hit("fire 3");
        ticker.hit("fork 2");
        switched.signal("USR2");
        while !lab.file(&format!("part.{number}")).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        ticker.hit("fire 2");
    }
    single.stop();
    switched.stop();
    let hits = |trace: &str| -> Vec<(i128, String, u32, u32)> {
        let events = lab.events(trace);
        let hit = |event: &crate::common::Event| {
            (event.integer(1), event.comm.clone(), event.pid, event.tid)
        };
        events.iter().map(hit).collect()
    };
    let (one, several) = (hits("single"), hits("part.[0-9]"));
    assert_eq!(one.len(), 3 * 7);
    assert_eq!(one, several);
    let report = |trace: &str| {
        let options = ["--sort", "comm,pid,dso", "--format", "csv"];
        said(&lab, "report", &[trace], &options, "2")
            .success()
            .stdout
    };
    assert_eq!(report("single"), report("part.*"));
    let summary = |trace: &str| {
        let json = said(&lab, "report", &[trace], &["--format", "json"], "2").success();
        without_files(&json.stdout)
    };
    assert_eq!(summary("single")["events"], summary("part.*")["events"]);
    assert_eq!(summary("part.*").get("gaps"), None);
}

/// A file that is not there leaves a gap, which is said, and so is what does not belong to the others.
#[test]
fn gaps_and_strangers_are_said() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let event = ticker.event("tick");
    for name in ["a.1", "a.2"] {
        let recorder = Recorder::start(
            &lab,
            ["-p", &ticker.pid().to_string(), "-e", &event, "-o", name],
        );
        ticker.hit("fire 3");
        recorder.stop();
    }
    let report = said(&lab, "report", &["a.*"], &["--format", "json"], "2").success();
    let report = report
        .complains("nothing was recorded for ")
        .complains("between a.1 and a.2");
    let answer: Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!(answer["events"], 6);
    assert_eq!(answer["gaps"].as_array().map(Vec::len), Some(1));
    let text = said(&lab, "report", &["a.1", "a.2"], &[], "2")
        .success()
        .stdout;
    assert!(
        text.contains("# 2 files, with 1 gap between them"),
        "{text}"
    );
    let twice = said(&lab, "script", &["a.1", "a.1"], &[], "2").exits(1);
    twice.complains("a.1 and a.1 are not parts of one trace: both were recorded from");
    // A recording of another host.
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    let demo = demo.to_str().expect("a path");
    let other = said(&lab, "script", &["a.1", demo], &[], "2").exits(1);
    other.complains("are not parts of one trace");
    let stdin = said(&lab, "script", &["a.1", "-"], &[], "2").exits(2);
    stdin.complains("standard input (-) cannot be put together with files");
}

/// `--time` by the clock on the wall has the lines that `-F tod` shows within.
#[test]
fn times_of_day_select_what_they_show() {
    let lab = Lab::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    let demo = demo.to_str().expect("a path");
    let script = |zone: &str, options: &[&str]| -> Vec<String> {
        let mut command = lab.command(["script", "-i", demo]);
        command
            .args(["--format", "{tod:.3} {time:.9}"])
            .args(options);
        command.env("TZ", zone);
        let printed = run(command).success().stdout;
        printed.lines().map(str::to_owned).collect()
    };
    for zone in ["UTC", "XXX-5"] {
        let all = script(zone, &[]);
        let second = |line: &String| line.get(..19).expect("a time").to_owned();
        let from = second(&all[all.len() / 2]);
        let within: Vec<&String> = all
            .iter()
            .filter(|line| line.get(..23) >= Some(&*format!("{from}.000")) && second(line) == from)
            .collect();
        let (date, time) = from.split_once(' ').expect("a date");
        let until = format!("{time}.999");
        for span in [
            format!("{time}..{until}"),
            format!("{date}T{time}..{until}"),
            format!("{date} {time},{date} {until}"),
        ] {
            let found = script(zone, &["--time", &span]);
            // The last millisecond begins at its end.
            let last: Vec<&String> = within
                .iter()
                .copied()
                .filter(|line| !line.starts_with(&format!("{date} {until}")))
                .collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), last, "{zone} {span}");
        }
    }
    let last = script("UTC", &["--time", "-100ms"]);
    let all = script("UTC", &[]);
    assert!(
        last.len() > 1 && last.len() < all.len(),
        "{} lines",
        last.len()
    );
    assert_eq!(all.get(all.len() - last.len()..), Some(&*last));
    let slowest = |options: &[&str]| -> String {
        let mut command = lab.command(["report", "-i", demo, "--span", "request", "--top", "1"]);
        command.args(options);
        command.env("TZ", "UTC");
        let printed = run(command).success().stdout;
        let mut lines = printed
            .lines()
            .skip_while(|line| !line.starts_with("Slowest"));
        lines.nth(1).expect("a span").to_owned()
    };
    let (clock, wall) = (slowest(&["--clock"]), slowest(&[]));
    let moment = clock.split_whitespace().nth(1).expect("a time");
    let line = all
        .iter()
        .find(|line| line.split_whitespace().any(|word| word.starts_with(moment)));
    let tod = line.and_then(|line| line.get(..23)).expect("its begin");
    assert!(wall.contains(tod), "{wall}: {tod}");
    for refused in [
        &["--rate", "1s", "--clock"][..],
        &["--span", "request", "--clock", "--format", "json"],
    ] {
        let refused = said(&lab, "report", &[demo], refused, "2").exits(2);
        refused.complains("--clock");
    }
    let wrong = lab
        .usdtrec(["script", "-i", demo, "--time", "25:00..26:00"])
        .exits(2);
    wrong.complains("02:37:07..02:37:09");
}

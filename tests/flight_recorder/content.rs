//! What is in a file.

use std::time::Duration;

use usdtrec_format::trace::TriggerKind;

use super::programs::{programs_of, without_numbers};
use super::{counters, dump, events, files, fired};
use crate::common::{Lab, Perf, Recorder, Ticker, need_tool, test, wait_until};

/// A signal and a request: all hits so far, with the names of processes that have ended, and recording goes on.
#[test]
fn a_signal_and_a_request_write_all_hits_so_far() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &tick, "-o", "t.data", "--ring", "1h"]);
    let mut hits = ticker.hit("fire 5");
    hits.extend(ticker.hit("thread 3"));
    hits.extend(ticker.hit("exec 4"));
    recorder.signal("USR2");
    wait_until("a file", || !files(lab.path(), "t.data").is_empty());
    let [first] = &files(lab.path(), "t.data")[..] else {
        panic!("one file is written");
    };
    let recorded = events(&lab, first);
    let found: Vec<(i128, i128)> = recorded
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(found, hits);
    // Those of the thread and of the child had ended.
    let names: Vec<&str> = recorded.iter().map(|event| &*event.comm).collect();
    let expected = [["ticker"; 5].as_slice(), &["worker"; 3], &["ticker"; 4]].concat();
    assert_eq!(names, expected);
    let signal = fired(first);
    assert_eq!(signal.kind, TriggerKind::Signal);
    hits.extend(ticker.hit("fire 2"));
    let second = dump(&lab, &recorder);
    assert_eq!(events(&lab, &second).len(), hits.len());
    let request = fired(&second);
    assert_eq!((request.kind, request.uid), (TriggerKind::Request, Some(0)));
    assert!(request.pid > 0 && request.time_ns > signal.time_ns);
    // Those that no file has any more count, too.
    hits.extend(ticker.hit("fire 3"));
    recorder
        .stop()
        .complains("wrote 2 files")
        .complains(&format!("{} events, 0 lost", hits.len()));
    // Nothing is written under the name itself.
    assert!(!lab.file("t.data").exists());
}

/// What is older than the window is not in the file; names and mappings of that time are.
#[test]
fn old_hits_fall_out_and_names_stay() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    ticker.keep_thread();
    let tick = ticker.event("tick");
    let options = ["-a", "-g", "-e", &tick, "-o", "t.data", "--ring", "1s"];
    let recorder = Recorder::start(&lab, options);
    ticker.hit("fire 7");
    ticker.hit("exec 3");
    std::thread::sleep(Duration::from_secs(5));
    let kept = ticker.hit("kept 4");
    let file = dump(&lab, &recorder);
    recorder.stop();
    let recorded = events(&lab, &file);
    assert_eq!(recorded.len(), kept.len());
    assert!(recorded.iter().all(|event| event.comm == "ticker"));
    assert!(recorded.iter().all(|event| event.pid == ticker.pid()));
    // Functions are named by mappings of before the window.
    let text = lab.usdtrec(["script", "-i", file.to_str().expect("a path")]);
    let text = text.success().stdout;
    assert!(text.matches("\n\t").count() >= 4, "{text}");
    assert!(text.contains("(/") && text.contains("ticker)"), "{text}");
}

/// A full recording, `report` and stock perf say the same of the window.
#[test]
fn a_full_recording_and_perf_agree() {
    need_tool("perf");
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let full = Recorder::start(&lab, ["-p", &pid, "-e", &tick, "-o", "full.data"]);
    let ring = ["-p", &pid, "-e", &tick, "-o", "t.data", "--ring", "1h"];
    let ring = Recorder::start(&lab, ring);
    for round in 0..20 {
        ticker.hit(&format!("fire {}", 500 + round));
        ticker.hit("thread 100");
        ticker.hit("fork 3");
    }
    let file = dump(&lab, &ring);
    ring.stop().complains(" 0 lost");
    full.stop().complains(" 0 lost");
    let key = |event: &crate::common::Event| {
        let words = (event.pid, event.tid, event.comm.clone());
        (words, event.ip, event.integer(1))
    };
    let keys =
        |trace: &std::path::Path| -> Vec<_> { events(&lab, trace).iter().map(key).collect() };
    let expected = keys(&lab.file("full.data"));
    assert_eq!(expected.len(), (500..520).sum::<usize>() + 20 * 103);
    assert_eq!(keys(&file), expected);
    let report = |trace: &std::path::Path| {
        let words = ["report", "--sort", "comm,tid", "--format", "csv", "-i"];
        let words = words.into_iter().chain([trace.to_str().expect("a path")]);
        lab.usdtrec(words).success().stdout
    };
    assert_eq!(report(&file), report(&lab.file("full.data")));
    let perf = Perf::new(&lab);
    let stock = |trace: &std::path::Path| {
        let words = ["script", "-F", "comm,pid,tid,event,trace", "-i"];
        let words = words.into_iter().chain([trace.to_str().expect("a path")]);
        perf.run(words).success().stdout
    };
    let stock_of_file = stock(&file);
    assert_eq!(stock_of_file.lines().count(), expected.len());
    assert_eq!(stock_of_file, stock(&lab.file("full.data")));
}

/// The programs at the probes are the same, instruction for instruction.
#[test]
fn programs_at_probes_are_the_same() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let programs = |options: &[&str]| {
        let common = ["-p", &pid, "-e", &tick, "-o", "t.data"];
        let recorder = Recorder::start(&lab, common.iter().chain(options));
        let programs = programs_of(recorder.pid());
        recorder.stop();
        programs
    };
    let expected = without_numbers(&programs(&[]));
    let count: usize = expected.iter().map(Vec::len).sum();
    assert!(count > 100, "{count} instructions");
    let ring = ["--ring", "10s", "--trigger", "sdt_ticker:tick: arg1 == 1"];
    let ring = without_numbers(&programs(&ring));
    let lengths = |programs: &[Vec<[u8; 8]>]| programs.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(&ring), lengths(&expected));
    for (number, (found, expected)) in ring.iter().zip(&expected).enumerate() {
        let differs = found
            .iter()
            .zip(expected)
            .position(|(found, expected)| found != expected);
        assert_eq!(differs, None, "program {number}");
    }
    let filtered = without_numbers(&programs(&["--filter", "arg1 == 1"]));
    assert!(filtered != expected, "a filter is in the program");
}

/// Events of files that appear while recording are in the file.
#[test]
fn probes_of_files_that_appear_are_in_the_file() {
    let lab = Lab::privileged();
    let program = crate::common::Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("ticker:tick@{}", program.display());
    let options = [
        "-a",
        "-e",
        &event,
        "-e",
        "usdtrec_none:*",
        "-o",
        "t.data",
        "--ring",
        "1h",
    ];
    let recorder = Recorder::start(&lab, options);
    let mut ticker = Ticker::again(&program);
    ticker.hit("fire 3");
    let file = dump(&lab, &recorder);
    recorder.stop();
    assert_eq!(counters(&events(&lab, &file)), [0, 1, 2]);
}

//! Files with probes that were asked for, and which processes begin to map while recording: their probes are planted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{Build, Lab, Process, Recorder, Ticker, test};

/// What the recorder says of a file that it planted.
const PLANTED: &str = "attached 1 probe ";

/// Builds the library. The option defines its provider, which no other test has.
fn library(lab: &Lab, provider: &'static [&'static str]) -> PathBuf {
    let options: &'static [&'static str] = match provider {
        [one] => Vec::leak(vec!["-shared", "-fPIC", "-O1", one]),
        _ => panic!("expected one option"),
    };
    let build = Build {
        options,
        ..Build::USUAL
    };
    build.make(lab, "late_library.c", "liblate.so")
}

fn loader(lab: &Lab) -> PathBuf {
    let build = Build {
        options: &["-O1", "-ldl"],
        ..Build::USUAL
    };
    build.make(lab, "late.c", "late")
}

/// Gives a loader a command: how many hits there were then.
fn tell(process: &mut Process, command: &str) -> usize {
    process.say(command);
    let line = process.line().expect("a number");
    line.parse().expect("a number")
}

/// Lets a library be loaded, hits it once it is planted, and returns the line that says so.
fn load_and_hit(recorder: &mut Process, loader: &mut Process, how: &str, hits: u32) -> String {
    tell(loader, how);
    let line = recorder.until_error_line(PLANTED);
    tell(loader, &format!("hit {hits}"));
    line
}

/// The recorder, once it records.
fn recorder(lab: &Lab, arguments: &[&str]) -> Process {
    let mut command = lab.command(["record", "-o", "trace"]);
    command.args(arguments);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record:");
    recorder
}

fn stop(recorder: Process) -> String {
    recorder.signal("INT");
    recorder.finish().success().stderr
}

/// Number of hits in the trace.
fn hits(lab: &Lab) -> usize {
    lab.events("trace").len()
}

#[test]
fn a_library_is_planted_in_any_process() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_any"]);
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let mut command = lab.command(["record", "-a", "-e", "late_any:hit", "-o", "trace"]);
    command.arg("-v");
    let mut recorder = Process::spawn(command);
    recorder.until_error_line(
        "usdtrec: no process maps a file with probes that match 'late_any:hit' now: waiting",
    );
    recorder.until_error_line("[ usdtrec record: 0 probes");
    let load = format!("load {}", library.display());
    let line = load_and_hit(&mut recorder, &mut loader, &load, 7);
    let begin = format!(
        "usdtrec: process {}: {}: attached 1 probe ",
        loader.pid(),
        library.display()
    );
    assert!(line.starts_with(&begin), "{line}");
    let end = "s after it was mapped (sdt_late_any:hit); hits in that time are not recorded";
    assert!(line.ends_with(end), "{line}");
    // Another process loads it: it is recorded from its first hit on.
    let mut second = Process::spawn(Command::new(lab.file("late")));
    tell(&mut second, &load);
    tell(&mut second, "hit 3");
    let said = stop(recorder);
    assert!(said.contains("usdtrec: followed: 1 file\n"), "{said}");
    assert_eq!(said.matches(PLANTED).count(), 1, "{said}");
    assert_eq!(hits(&lab), 10);
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: serde_json::Value =
        serde_json::from_str(&report.success().stdout).expect("an object");
    let shortfall = &report["shortfalls"][0];
    assert_eq!(shortfall["kind"], "followed");
    assert_eq!(shortfall["file"], library.to_str().expect("a path"));
    assert_eq!(shortfall["pids"][0], loader.pid());
    assert!(shortfall["gap_ns"].as_u64().is_some_and(|gap| gap > 0));
    assert!(shortfall["build_id"].is_string());
    assert_eq!(report["lost_exact"], false);
}

#[test]
fn a_library_is_planted_in_a_named_process_and_a_command() {
    let lab = Lab::privileged();
    let load = format!(
        "load {}",
        library(&lab, &["-DPROVIDER=late_named"]).display()
    );
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let mut other = Process::spawn(Command::new(lab.file("late")));
    tell(&mut other, &load);
    let pid = loader.pid().to_string();
    let mut recorder = recorder(&lab, &["-p", &pid, "-e", "late_named:hit"]);
    load_and_hit(&mut recorder, &mut loader, &load, 5);
    // Not recorded.
    tell(&mut other, "hit 9");
    stop(recorder);
    assert_eq!(hits(&lab), 5);
    let mut command = lab.command(["record", "-e", "late_named:hit", "-o", "trace", "--"]);
    command.arg(lab.file("late"));
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("the command's program has no probes that match 'late_named:hit'");
    recorder.say(&load);
    recorder.until_error_line(PLANTED);
    recorder.say("hit 6");
    let said = recorder.finish().success().stderr;
    assert!(said.contains(" 6 events"), "{said}");
    assert_eq!(hits(&lab), 6);
}

/// As libstapsdt makes probes: a file without a name, and a new one each time.
#[test]
fn files_without_a_name_are_planted() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_nameless"]);
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let mut recorder = recorder(&lab, &["-a", "-e", "late_nameless:*"]);
    for how in ["memory", "unlinked", "memory", "unlinked"] {
        let load = format!("{how} {}", library.display());
        let line = load_and_hit(&mut recorder, &mut loader, &load, 4);
        // It may be read just before its name is removed.
        let is_named = how == "unlinked" && line.contains(".gone: attached");
        assert!(is_named || line.contains(" (deleted): attached"), "{line}");
        tell(&mut loader, "unload");
    }
    let said = stop(recorder);
    assert!(said.contains("usdtrec: followed: 4 files\n"), "{said}");
    assert_eq!(hits(&lab), 16);
}

/// A program that is executed, and its new version.
/// Libraries that a process loads between the recorder's look at what runs and the first record of a mapping, and before and after that.
#[test]
fn libraries_are_planted_that_are_loaded_while_a_recording_begins() {
    let lab = Lab::privileged();
    let load = library(&lab, &["-DPROVIDER=late_begin"]);
    let load = format!("keep {}", load.display());
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let options = ["record", "-a", "-o", "trace", "-e", "late_begin:hit"];
    let mut recorder = Process::spawn(lab.command(options));
    // Of one user 128 files wait at most. On a busy machine a recording begins late.
    let (mut copies, mut attached) = (0, None);
    while attached.is_none() && copies < 100 {
        tell(&mut loader, &load);
        copies += 1;
        let pause = Duration::from_millis(50 + 5 * copies as u64);
        let line = recorder.error_line_within(pause);
        attached = line.as_deref().and_then(attached_sites);
    }
    let begun = || attached_sites(&recorder.until_error_line("[ usdtrec record:"));
    let attached = attached.or_else(begun);
    for _ in attached.expect("a number")..copies {
        recorder.until_error_line(PLANTED);
    }
    assert_eq!(tell(&mut loader, "all"), copies);
    stop(recorder);
    assert_eq!(hits(&lab), copies);
}

/// The number of sites in the line of a recorder that has begun.
fn attached_sites(line: &str) -> Option<usize> {
    let (_, rest) = line.split_once("[ usdtrec record: ")?;
    let (_, rest) = rest.split_once(" at ")?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn programs_are_planted_as_they_begin() {
    let lab = Lab::privileged();
    let mut old = Ticker::start(&lab);
    let path = old.program().to_owned();
    let options = Build {
        options: &["-O1"],
        ..Build::USUAL
    };
    options.make(&lab, "ticker.c", "upgrade");
    let event = old.event("tick");
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    fs::rename(lab.file("upgrade"), &path).expect("the new program");
    let mut new = Ticker::again(&path);
    let line = recorder.until_error_line(": attached ");
    let begin = format!("usdtrec: process {}: {}: ", new.pid(), path.display());
    assert!(line.starts_with(&begin), "{line}");
    new.hit("fire 2");
    old.hit("fire 3");
    stop(recorder);
    assert_eq!(hits(&lab), 5);
}

/// A path chooses a file as processes see it; others with the same probe are not planted.
#[test]
fn a_path_chooses_what_is_planted() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_path"]);
    let program = loader(&lab);
    let (chosen, other) = (lab.file("chosen.so"), lab.file("other.so"));
    fs::rename(&library, &other).expect("the library");
    fs::copy(&other, &chosen).expect("a copy");
    let event = format!("late_path:hit@{}", chosen.display());
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    let load = |path: &Path| {
        let mut loader = Process::spawn(Command::new(&program));
        tell(&mut loader, &format!("load {}", path.display()));
        loader
    };
    let new = lab.file("new.so");
    fs::copy(&other, &new).expect("a copy");
    fs::rename(&new, &chosen).expect("the new version");
    let mut first = load(&other);
    let mut second = load(&chosen);
    let line = recorder.until_error_line(PLANTED);
    assert!(line.contains("chosen.so: attached"), "{line}");
    tell(&mut first, "hit 9");
    tell(&mut second, "hit 2");
    let said = stop(recorder);
    assert!(said.contains("usdtrec: followed: 1 file\n"), "{said}");
    assert_eq!(hits(&lab), 2);
}

/// What is indexed is a hint: a file that is not at its path any more is said, and another one is waited for.
#[test]
fn an_indexed_file_that_is_gone_is_no_end() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_gone"]);
    let path = library.to_str().expect("a path").to_owned();
    lab.usdtrec(["buildid-cache", "--add", &path]).success();
    let moved = lab.file("libmoved.so");
    fs::rename(&library, &moved).expect("a library");
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let pid = loader.pid().to_string();
    for target in [&["-p", &pid][..], &["-a"]] {
        let event = ["-e", "late_gone:hit"];
        let arguments = [&["record", "-o", "trace"], target, &event].concat();
        let mut recorder = Process::spawn(lab.command(arguments.iter()));
        recorder.until_error_line("the file is no longer there");
        recorder.until_error_line("now: waiting");
        recorder.until_error_line("[ usdtrec record: 0 probes");
        let load = format!("load {}", moved.display());
        load_and_hit(&mut recorder, &mut loader, &load, 4);
        stop(recorder);
        assert_eq!(hits(&lab), 4, "{target:?}");
        tell(&mut loader, "unload");
        lab.usdtrec([&["record", "--no-wait"], target, &event].concat())
            .exits(1)
            .complains("the file is no longer there");
    }
}

#[test]
fn without_waiting_a_pattern_must_match() {
    let lab = Lab::privileged();
    let no_wait = ["record", "-a", "--no-wait", "-e", "late_nowhere:hit"];
    lab.usdtrec(no_wait)
        .exits(1)
        .complains("no process runs a file with a probe late_nowhere:hit now");
    lab.usdtrec(["record", "-a", "--engine", "perf", "-e", "late_nowhere:hit"])
        .exits(1)
        .complains("no process runs a file with a probe late_nowhere:hit now");
    lab.usdtrec(["record", "-a", "--no-wait", "-e", "late:hit@/bin/sh"])
        .exits(2)
        .complains("--no-wait has no effect");
    // A path that leads nowhere is a mistake, and so is a name that the provider does not have.
    let mut running = Ticker::start(&lab);
    running.hit("fire 1");
    lab.usdtrec(["record", "-a", "-e", "ticker:tock"])
        .exits(1)
        .complains("closest: sdt_ticker:tick");
    lab.usdtrec(["record", "-a", "-e", "late:hit@/no/such/file"])
        .exits(1);
    // What waits in vain has a trace without events.
    let mut command = lab.command(["record", "-a", "-e", "late_nowhere:hit", "-o", "trace"]);
    command.args(["--duration", "300ms"]);
    let said = Process::spawn(command).finish().success().stderr;
    assert!(said.contains(": waiting\n"), "{said}");
    assert_eq!(hits(&lab), 0);
    lab.usdtrec(["report", "-i", "trace"]).success();
}

/// The perf engine says that it does not follow.
#[test]
fn the_perf_engine_says_what_it_does_not_plant() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_perf"]);
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let mut ticker = Ticker::start(&lab);
    let pids = format!("{},{}", ticker.pid(), loader.pid());
    let arguments = [
        "-p",
        &pids,
        "-e",
        "late_perf:hit,ticker:tick",
        "--engine",
        "perf",
    ];
    // The first pattern is in an indexed file.
    lab.usdtrec(["buildid-cache", "--add", library.to_str().expect("a path")])
        .success();
    let copy = lab.file("copy.so");
    fs::copy(&library, &copy).expect("a copy");
    let mut recorder = recorder(&lab, &arguments);
    tell(&mut loader, &format!("load {}", copy.display()));
    let line = recorder.until_error_line("not attached: the perf engine does not follow files");
    assert!(line.contains("copy.so: mapped while recording"), "{line}");
    ticker.hit("fire 1");
    let said = stop(recorder);
    let summary = "not followed: 1 file with selected probes";
    assert!(said.contains(summary), "{said}");
}

/// Whoever maps very many files gets some of them planted, and does not keep others from it.
#[test]
fn very_many_files_are_bounded() {
    let lab = Lab::privileged();
    let library = library(&lab, &["-DPROVIDER=late_many"]);
    let mut many = Process::spawn(Command::new(loader(&lab)));
    let mut recorder = recorder(&lab, &["-a", "-e", "late_many:hit"]);
    assert_eq!(
        tell(&mut many, &format!("many {} 2000", library.display())),
        2000
    );
    // On a busy host it may need longer for the first one than the program for all.
    recorder.until_error_line(PLANTED);
    let said = stop(recorder);
    let lines = said.lines().count();
    assert!(lines < 80, "{lines} lines:\n{said}");
    assert!(said.contains("not followed: "), "{said}");
    let planted = said.lines().find_map(|line| {
        let rest = line.strip_prefix("usdtrec: followed: ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    });
    assert!(planted.is_some_and(|planted| planted <= 256), "{said}");
    assert!(hits(&lab) <= 256);
}

/// A live verb follows, too.
#[test]
fn trace_prints_hits_of_a_file_that_appeared() {
    let lab = Lab::privileged();
    let load = format!(
        "load {}",
        library(&lab, &["-DPROVIDER=late_live"]).display()
    );
    let mut loader = Process::spawn(Command::new(loader(&lab)));
    let mut trace = Process::spawn(lab.command(["trace", "-a", "-e", "late_live:hit"]));
    trace.until_error_line("[ usdtrec trace: 0 probes");
    load_and_hit(&mut trace, &mut loader, &load, 3);
    for number in 1..=3 {
        let line = trace.line().expect("a hit");
        assert!(line.contains("sdt_late_live:hit"), "{line}");
        assert!(line.contains(&format!("={number}")), "{line}");
    }
    stop(trace);
}

/// Nothing but what is recorded appears.
#[test]
fn what_is_recorded_is_not_planted_again() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let pid = ticker.pid().to_string();
    let recorder = Recorder::start(&lab, ["-p", &pid, "-e", "*:*", "-o", "out"]);
    ticker.hit("fire 1");
    let said = recorder.stop().stderr;
    assert!(!said.contains("followed"), "{said}");
}

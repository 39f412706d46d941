//! Recording from inside a container: a pid namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Build, Event, Finished, Lab, Process, Recorder, need_tool, signal, test};

/// The command of a program that is process 2 of a pid namespace, which a shell begins.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]);
    command.args(["sh", "-c", "\"$0\"; true"]).arg(program);
    command
}

/// A ticker of that kind, which has hit.
fn contained(program: &Path) -> Process {
    let mut process = Process::spawn(command(program));
    hit(&mut process, "fire 1");
    process
}

/// Lets a ticker hit, until it is done.
fn hit(ticker: &mut Process, command: &str) {
    ticker.say(command);
    while ticker.line().expect("a line") != "done" {}
}

/// The id of the only child of a process, here.
pub(crate) fn child_of(process: &Process) -> String {
    let pid = process.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.expect("children").trim().to_owned()
}

/// A recorder in the namespace of a process. The directory is another one there.
pub(crate) fn recorder_in(lab: &Lab, pid: &str, options: &[&str]) -> Process {
    let enter = [
        "-t",
        pid,
        "-p",
        "-m",
        env!("CARGO_BIN_EXE_usdtrec"),
        "record",
    ];
    let mut command = lab.at_home(Path::new("nsenter"), enter);
    command.arg("-o").arg(lab.file("trace"));
    command.args(options);
    let mut recorder = Process::spawn(command);
    let line = recorder.until_error_line("[ usdtrec record:");
    assert!(line.contains("engine bpf ("), "{line}");
    assert!(
        line.contains("; processes of this pid namespace only"),
        "{line}"
    );
    recorder
}

/// Ends it; what it says then.
pub(crate) fn stop(recorder: Process) -> Finished {
    signal(child_of(&recorder).parse().expect("a number"), "INT");
    recorder.finish().success()
}

/// Counter and string of each hit, and whether it is of the ticker.
fn hits(lab: &Lab, trace: &str) -> Vec<(i128, String, bool)> {
    let of = |event: &Event| {
        let text = event.string(3).to_owned();
        (event.integer(1), text, event.pid == 2)
    };
    lab.events(trace).iter().map(of).collect()
}

/// The program's own count, and the same recording from outside.
#[test]
fn processes_of_the_container() {
    let lab = Lab::privileged();
    need_tool("unshare");
    need_tool("nsenter");
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let mut stranger = Process::spawn(Command::new(&program));
    for options in [
        &["-a"][..],
        &["-p", "2"],
        &["-p", "2", "--engine", "bpf-perf"],
    ] {
        let mut ticker = contained(&program);
        let outside = child_of(&ticker);
        let from_outside = ["-p", &outside, "-o", "outside", "-e", &event];
        let outer = Recorder::start(&lab, from_outside);
        let common = ["-e", &event];
        let recorder = recorder_in(&lab, &outside, &[&common[..], options].concat());
        hit(&mut ticker, "fire 3");
        hit(&mut stranger, "fire 5");
        hit(&mut ticker, "thread 2");
        hit(&mut ticker, "fork 4");
        hit(&mut stranger, "fire 5");
        hit(&mut ticker, "exec 1");
        stop(recorder).complains("10 events, 0 lost");
        outer.signal("INT");
        outer.finish().success();
        let inside = hits(&lab, "trace");
        let counters: Vec<i128> = inside.iter().map(|hit| hit.0).collect();
        assert_eq!(counters, [0, 1, 2, 0, 1, 0, 1, 2, 3, 0], "{options:?}");
        assert!(
            inside.iter().all(|hit| hit.1 == "ticker text"),
            "{inside:?}"
        );
        assert_eq!(inside.iter().filter(|hit| hit.2).count(), 5, "{inside:?}");
        let seen = hits(&lab, "outside");
        let seen: Vec<i128> = seen.iter().map(|hit| hit.0).collect();
        assert_eq!(seen, counters);
        for trace in ["trace", "outside"] {
            fs::remove_file(lab.file(trace)).expect("a trace");
        }
    }
}

/// Filters of the process, and a command with its children.
#[test]
fn ids_are_those_of_the_container() {
    let lab = Lab::privileged();
    need_tool("unshare");
    need_tool("nsenter");
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let mut ticker = contained(&program);
    let outside = child_of(&ticker);
    let event = format!("sdt_ticker:tick@{}", program.display());
    for (filter, expected) in [("pid == 2", 3), ("pid != 2 && tid > 2", 2)] {
        let options = ["-e", &event, "--filter", filter];
        let options = [&options[..], &["-a", "--", "sh", "-c", "read line"]].concat();
        let mut recorder = recorder_in(&lab, &outside, &options);
        hit(&mut ticker, "fire 3");
        hit(&mut ticker, "fork 2");
        recorder.say("end");
        recorder.finish().success();
        assert_eq!(lab.events("trace").len(), expected, "{filter}");
    }
    let script = "\"$0\" 2; (\"$0\" 3); true";
    let path = program.to_str().expect("a path");
    let options = ["-e", &event, "--", "sh", "-c", script, path];
    let recorder = recorder_in(&lab, &outside, &options);
    hit(&mut ticker, "fire 3");
    recorder.finish().success();
    assert_eq!(lab.events("trace").len(), 5);
}

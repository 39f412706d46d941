//! Programs that copy their own code (testdata/targets/copied_code.c): with breakpoints in the copy they are killed by SIGTRAP. `--delay`
//! attaches the probes later.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Build, Engine, Finished, Lab, Process, Recorder, skip, test};

const HUGIFY: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-DHUGIFY"],
};
/// What is said of a process that died of it.
const KILLED: &str = "killed by SIGTRAP";
/// What is said of code that was copied before.
const MOVED: &str = "is not that of the file, but in other memory";
/// Status of a command that was killed by SIGTRAP, as shells have it.
const STATUS: i32 = 128 + 5;

fn built(lab: &Lab) -> PathBuf {
    Build::USUAL.make(lab, "copied_code.c", "copied")
}

fn event(program: &Path) -> String {
    format!("copied:hit@{}", program.display())
}

fn spawn(program: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command)
}

/// On the terminal, with what to do, and in the trace.
#[track_caller]
fn is_explained(lab: &Lab, finished: &Finished) {
    for words in [KILLED, "-D MSECS"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
    let unchecked = "could not be checked in time";
    assert!(!finished.stderr.contains(unchecked), "{}", finished.stderr);
    let report = lab.usdtrec(["report", "-i", "usdtrec.data"]);
    assert!(report.stderr.contains(KILLED), "{}", report.stderr);
}

#[test]
fn the_end_of_a_command() {
    for engine in [Engine::BpfMulti, Engine::PerfTracefs] {
        let lab = Lab::privileged();
        let program = built(&lab);
        let path = program.to_str().expect("UTF-8");
        let event = event(&program);
        let words = engine.record("usdtrec.data", &event, &[path, "0", "50"]);
        is_explained(&lab, &lab.usdtrec(words).exits(STATUS));
    }
}

#[test]
fn the_end_of_what_a_command_starts() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let event = event(&program);
    let script = format!("{} 0 50; exit $?", program.display());
    let words = ["record", "-e", &event, "--", "sh", "-c", &script];
    let finished = lab.usdtrec(words).exits(STATUS).complains(KILLED);
    assert!(
        finished.stderr.contains("with -D MSECS"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_end_of_other_processes() {
    for is_named in [true, false] {
        let lab = Lab::privileged();
        let program = built(&lab);
        let event = event(&program);
        let mut process = spawn(&program, &["line", "50"]);
        let pid = process.pid().to_string();
        let target: &[&str] = if is_named { &["-p", &pid] } else { &["-a"] };
        let recorder = Recorder::start(&lab, ["-e", &event].iter().chain(target));
        // It is known by then: its parent waits for it at once.
        std::thread::sleep(std::time::Duration::from_millis(500));
        process.say("go");
        process.finish();
        let finished = if is_named {
            recorder.finish().success()
        } else {
            std::thread::sleep(std::time::Duration::from_millis(500));
            recorder.stop()
        };
        is_explained(&lab, &finished);
    }
}

/// A program that ends so in other ways, and one that does not copy, are not blamed.
#[test]
fn other_ends_are_not_explained() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    let finished = lab.usdtrec(["record", "-e", &event, "--", path, "never", "20"]);
    let finished = finished.success();
    assert!(!finished.stderr.contains("SIGTRAP"), "{}", finished.stderr);
    assert_eq!(lab.events("usdtrec.data").len(), 20);
    let words = ["record", "-e", &event, "--", "sh", "-c", "kill -TRAP $$"];
    let finished = lab.usdtrec(words).exits(STATUS);
    assert!(!finished.stderr.contains(KILLED), "{}", finished.stderr);
}

/// With a delay, the program has copied its code before, and lives.
#[test]
fn a_delay_lets_it_live() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    for verb in ["record", "trace", "stat"] {
        let words = [verb, "-D", "300", "-e", &event, "--", path, "0", "1500"];
        let finished = lab.usdtrec(words).success().complains(MOVED);
        let said = [&*finished.stdout, &finished.stderr].concat();
        assert!(said.contains("hits 1500"), "{verb}: {said}");
    }
}

#[test]
fn a_delay_begins_later() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    let words = [
        "record", "--delay", "400", "-e", &event, "--", path, "never", "2000",
    ];
    lab.usdtrec(words)
        .success()
        .complains("attached in 0.400 s");
    let events = lab.events("usdtrec.data");
    assert!((1..1990).contains(&events.len()), "{}", events.len());
    let mut process = spawn(&program, &["never", "3000"]);
    assert_eq!(process.line().as_deref(), Some("copied"));
    let pid = process.pid().to_string();
    let words = [
        "record",
        "-D",
        "200",
        "-e",
        &event,
        "-p",
        &pid,
        "--duration",
        "300ms",
    ];
    lab.usdtrec(words).success();
    assert!(!lab.events("usdtrec.data").is_empty());
}

/// The exit status is the command's, and there is no trace.
#[test]
fn a_command_that_ends_before_the_delay() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let event = event(&program);
    for verb in ["record", "stat"] {
        let words = [
            verb, "-D", "60000", "-e", &event, "--", "sh", "-c", "exit 7",
        ];
        lab.usdtrec(words)
            .exits(7)
            .complains("before the delay of 60.000 s was over: nothing was recorded");
    }
    assert!(!lab.file("usdtrec.data").exists());
}

#[test]
fn a_signal_ends_the_delay() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let event = event(&program);
    let words = ["record", "-D", "60000", "-e", &event, "--", "sleep", "60"];
    let mut process = Process::spawn(lab.command(words));
    process.until_error_line("attached in 60.000 s");
    process.signal("INT");
    process.finish().exits(1).complains("interrupted");
}

#[test]
fn delays_that_are_refused() {
    let lab = Lab::new();
    for (value, says) in [
        ("-1", "nothing could enable them"),
        ("0", "expected milliseconds"),
        ("10-20", "expected milliseconds"),
    ] {
        let words = ["record", "-D", value, "-e", "a:b@/bin/true", "--", "true"];
        lab.usdtrec(words).exits(2).complains(says);
    }
}

/// All of its executable segment is anonymous memory by then, so that no mapping with code is the file's.
#[test]
fn code_in_other_memory_is_the_reason() {
    let lab = Lab::privileged();
    let program = built(&lab);
    let event = event(&program);
    for arguments in [&["0", "9000", "all"][..], &["0", "9000"]] {
        let mut process = spawn(&program, arguments);
        assert_eq!(process.line().as_deref(), Some("copied"));
        let pid = process.pid().to_string();
        for target in [&["-p", &*pid][..], &["-a"]] {
            let words = ["record", "-e", &event, "--duration", "700ms"];
            let words = words.iter().chain(target);
            let finished = lab.usdtrec(words).success().complains(MOVED);
            let is_false = finished.stderr.contains("no recorded process mapped");
            assert!(!is_false, "{}", finished.stderr);
        }
        let doctor = lab.usdtrec(["doctor", "-p", &pid]).stdout;
        assert!(doctor.contains("in other memory"), "{doctor}");
        process.signal("KILL");
    }
}

/// Skips the test on a host without transparent huge pages, where Node.js does not copy its code.
fn need_huge_pages() {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if !enabled.is_ok_and(|text| !text.contains("[never]")) {
        skip("there are no transparent huge pages");
    }
}

#[test]
fn node_with_large_pages_is_refused() {
    need_huge_pages();
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "copied_code.c", "node");
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    let refused = ["Node.js copies its code", "-D MSECS", "--force"];
    let is_refused = |finished: &Finished| refused.iter().all(|it| finished.stderr.contains(it));
    for option in ["--use-largepages=on", "--use_largepages=silent"] {
        let finished = lab.usdtrec(["record", "-e", &event, "--", path, option]);
        assert!(is_refused(&finished), "{}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    }
    let mut command = lab.command(["record", "-e", &event, "--", path, "script.js"]);
    command.env("NODE_OPTIONS", "--no-warnings --use-largepages=on");
    assert!(is_refused(&crate::common::run(command)));
    // That is the script's.
    let words = [
        "record",
        "-e",
        &event,
        "--",
        path,
        "never",
        "--use-largepages=on",
    ];
    assert!(!is_refused(&lab.usdtrec(words).success()));
    let words = [
        "record",
        "-e",
        &event,
        "--force",
        "--",
        path,
        "--use-largepages=on",
    ];
    lab.usdtrec(words).exits(STATUS).complains(KILLED);
    let words = [
        "record",
        "-D",
        "200",
        "-e",
        &event,
        "--",
        path,
        "--use-largepages=on",
        "900",
    ];
    lab.usdtrec(words).success().complains(MOVED);
}

#[test]
fn hugify_is_refused() {
    let lab = Lab::privileged();
    let program = HUGIFY.make(&lab, "copied_code.c", "hugified");
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    lab.usdtrec(["record", "-e", &event, "--", path, "0", "50"])
        .exits(1)
        .complains("__bolt_hugify_self")
        .complains("-D MSECS");
    let words = ["record", "--force", "-e", &event, "--", path, "never", "20"];
    lab.usdtrec(words).success();
    assert_eq!(lab.events("usdtrec.data").len(), 20);
    let words = ["record", "-D", "200", "-e", &event, "--", path, "0", "900"];
    lab.usdtrec(words).success().complains(MOVED);
}

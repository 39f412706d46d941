//! Very many files of one process, and very many processes of one file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use usdtrec_testing::is_deep;

use super::{OwnHits, PLANTED, ProgramPlace, check, program, run_until_planted, waiting_recorder};
use crate::common::{Build, Lab, Process, Recorder, test, wait_until};

/// How many there are.
fn many(deep: usize) -> usize {
    if is_deep() { deep } else { deep / 10 }
}

fn crowd(lab: &Lab, provider: &'static str) -> PathBuf {
    let build = Build {
        options: Vec::leak(vec!["-O2", provider]),
        ..Build::USUAL
    };
    build.make(lab, "crowd.c", "crowd")
}

/// What maps them does not keep programs from being planted that appear later.
#[test]
fn a_process_maps_very_many_files_without_probes() {
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=appearing_after");
    let crowd = crowd(&lab, "-DPROVIDER=appearing_crowd_files");
    let mut recorder = waiting_recorder(&lab, "appearing_after:hit", &[]);
    let mut command = Command::new(crowd);
    // All verbs look at 10,000 files of a user, and other tests have files meanwhile.
    let number = many(6_000).to_string();
    command.args(["files", &number, "/bin/true"]);
    let mut crowd = Process::spawn(command);
    assert_eq!(crowd.line().as_deref(), Some("ready"));
    let place = [ProgramPlace {
        name: "a program among very many files",
        script: "exec $PROGRAM $HITS",
    }];
    let own = run_until_planted(&lab, &program, &mut recorder, &place, |_| {});
    crowd.say("");
    assert_eq!(crowd.line(), Some(number));
    recorder.signal("INT");
    recorder.finish().success();
    check(&lab, &place, &own);
}

/// The ring of process records is full when a program begins: its file is found nevertheless.
#[test]
fn a_program_is_planted_whose_records_were_lost() {
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=appearing_lost");
    let crowd = crowd(&lab, "-DPROVIDER=appearing_lost_crowd");
    let mut recorder = waiting_recorder(&lab, "appearing_lost:hit", &[]);
    recorder.signal("STOP");
    // A ring has the records of one CPU.
    let on_first_cpu = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", "0"]).arg(program);
        command.args(arguments);
        Process::spawn(command)
    };
    let mut crowd = on_first_cpu(&crowd, &["files", "3000", "/bin/true"]);
    assert_eq!(crowd.line().as_deref(), Some("ready"));
    let mut process = on_first_cpu(&program, &["0", "0"]);
    wait_until("the program", || {
        fs::read_link(format!("/proc/{}/exe", process.pid())).is_ok_and(|exe| exe == program)
    });
    recorder.signal("CONT");
    recorder.until_error_line(PLANTED);
    // For hits that are recorded.
    thread::sleep(Duration::from_millis(50));
    process.say("");
    let own = OwnHits::parse(&process.line().expect("its hits"));
    process.finish().success();
    recorder.signal("INT");
    let said = recorder.finish().success();
    said.complains("process records were lost");
    crowd.say("");
    assert_eq!(crowd.line().as_deref(), Some("3000"));
    let events = lab.events("trace");
    let times: Vec<u64> = events.iter().map(|hit| hit.integer(3) as u64).collect();
    assert!(!times.is_empty());
    assert!(own.times.ends_with(&times), "{times:?} of {:?}", own.times);
}

/// One file, planted before they run and while they do.
#[test]
fn very_many_processes_run_one_file() {
    let lab = Lab::privileged();
    let crowd = crowd(&lab, "-DPROVIDER=appearing_crowd");
    let number = many(5_000).to_string();
    let start = || {
        let mut command = Command::new(&crowd);
        command.args(["children", &number]);
        let mut crowd = Process::spawn(command);
        assert_eq!(crowd.line().as_deref(), Some("ready"));
        crowd
    };
    let hit = |mut crowd: Process| {
        crowd.say("");
        assert_eq!(crowd.line().as_deref(), Some(&*number));
    };
    let mut waiting = waiting_recorder(&lab, "appearing_crowd:hit", &[]);
    let running = start();
    waiting.until_error_line(PLANTED);
    let listed = lab.usdtrec(["list", "-a", "appearing_crowd:*"]);
    let listed = listed.success().stdout;
    let processes = (many(5_000) + 1).to_string();
    let row = listed.lines().last().expect("a row");
    let columns: Vec<&str> = row.split_whitespace().take(2).collect();
    assert_eq!(columns, ["1", &processes], "{listed}");
    let options = ["-a", "-o", "running", "-e", "appearing_crowd:hit"];
    let recorder = Recorder::start(&lab, options);
    hit(running);
    for (said, trace) in [(recorder.stop(), "running"), {
        waiting.signal("INT");
        (waiting.finish().success(), "trace")
    }] {
        said.complains(" 0 lost");
        assert_eq!(lab.events(trace).len(), many(5_000), "{trace}");
    }
}

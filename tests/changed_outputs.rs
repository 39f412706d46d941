//! What others do to a trace while it is written: it is said, and where events are gone the status is not 0.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{Finished, Lab, Recorder, Ticker, test, wait_until};

/// Records hits before and after something is done to the trace; the first ones are in the file by then.
fn recorded(lab: &Lab, meddle: impl FnOnce(&Path)) -> Finished {
    let mut target = Ticker::start(lab);
    let event = target.event("tick");
    let recorder = Recorder::start(lab, ["-a", "-o", "trace", "-e", &event]);
    target.hit("fire 500");
    let trace = lab.file("trace");
    let events = || {
        lab.usdtrec(["script", "-i", "trace"])
            .stdout
            .lines()
            .count()
    };
    wait_until("the first flush", || events() == 500);
    meddle(&trace);
    target.hit("fire 20");
    recorder.signal("INT");
    recorder.finish()
}

#[test]
fn a_truncated_trace_is_a_failure() {
    for left in [0, 4, 60_000] {
        let lab = Lab::privileged();
        let ended = recorded(&lab, |trace| {
            let file = fs::File::options().write(true).open(trace);
            let file = file.expect("the trace");
            let written = file.metadata().expect("it").len();
            file.set_len(left.min(written - 1)).expect("shorter");
        });
        ended.exits(1).complains("was truncated to");
        // What was recorded later is there.
        let script = lab.usdtrec(["script", "-i", "trace"]);
        let lines = script.stdout.lines().count();
        assert!(
            (20..520).contains(&lines),
            "{left}: {lines}: {}",
            script.stderr
        );
    }
}

#[test]
fn an_overwritten_trace_is_a_failure() {
    let lab = Lab::privileged();
    let ended = recorded(&lab, |trace| {
        let written = fs::metadata(trace).expect("the trace").len();
        fs::write(trace, "x".repeat(written as usize)).expect("room");
    });
    ended.exits(1).complains("was overwritten");
}

/// A trace whose middle is overwritten. Who has it open for writing without changing it, or only reads it, is no failure.
#[test]
fn a_trace_that_is_overwritten_in_its_middle_is_a_failure() {
    let lab = Lab::privileged();
    // Of the part of the head that is reserved, and of the hits.
    for after_middle in [false, true] {
        let ended = recorded(&lab, |trace| {
            let written = fs::metadata(trace).expect("the trace").len();
            let at = if after_middle {
                written - 800
            } else {
                written / 2
            };
            let file = fs::File::options().write(true).open(trace);
            let file = file.expect("the trace");
            file.write_all_at(&[0x55; 600], at).expect("room");
        });
        ended.exits(1).complains("was overwritten");
    }
    let ended = recorded(&lab, |trace| {
        drop(fs::File::options().write(true).open(trace));
        drop(fs::read(trace));
    });
    let ended = ended.success();
    assert!(!ended.stderr.contains("writing"), "{}", ended.stderr);
    assert_eq!(lab.events("trace").len(), 520);
}

#[test]
fn a_replaced_trace_is_a_failure() {
    let lab = Lab::privileged();
    let ended = recorded(&lab, |trace| {
        fs::write(lab.file("other"), "of another program").expect("a file");
        fs::rename(lab.file("other"), trace).expect("its name");
    });
    ended.exits(1).complains("was deleted or replaced");
    let other = fs::read(lab.file("trace")).expect("the other one");
    assert_eq!(other, b"of another program");
}

#[test]
fn a_renamed_trace_is_whole_and_said() {
    let lab = Lab::privileged();
    let ended = recorded(&lab, |trace| {
        fs::rename(trace, lab.file("elsewhere")).expect("another name");
    });
    let ended = ended.success().complains("was renamed");
    let name = lab.path().canonicalize().expect("a path").join("elsewhere");
    let name = name.display().to_string();
    assert!(ended.stderr.contains(&name), "{}", ended.stderr);
    assert_eq!(lab.events("elsewhere").len(), 520);
    assert!(!lab.file("trace").exists());
}

//! `--no-gap` where processes are stopped: whoever else stops, continues or traces them is not disturbed, and none stays stopped.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::{Build, Finished, Lab, need_tool, run, signal, test, wait_until};
use crate::no_gap::{Recorded, STOPPED, UNHELD, early, record, ways};
use crate::other_processes::kernel_holds;

/// Longer than any process is stopped.
const LONG: Duration = Duration::from_millis(2500);

/// A process that is stopped at a mapping, which its recorder does not see: it is stopped itself, and what `others` are of its helpers, too.
#[track_caller]
fn held_beside(
    lab: &Lab,
    provider: &'static str,
    others: impl Fn(&Recorded) -> Vec<u32>,
) -> Recorded {
    for _ in 0..5 {
        let mut recorded = Recorded::start(lab, STOPPED, provider);
        let others = others(&recorded);
        others.iter().for_each(|pid| signal(*pid, "STOP"));
        recorded.recorder.signal("STOP");
        recorded.process.say(&recorded.load);
        let mut answer = None;
        wait_until("that the process is stopped, or not held", || {
            answer = recorded.process.line_within(Duration::from_millis(1));
            answer.is_some() || recorded.is_stopped()
        });
        if answer.is_none() {
            return recorded;
        }
        // On a busy machine the recorder had not run for two seconds before the mapping.
        others.iter().for_each(|pid| signal(*pid, "CONT"));
        recorded.recorder.signal("CONT");
        let ended = recorded.recorder.stop();
        assert!(ended.stderr.contains(UNHELD), "{ended:?}");
    }
    panic!("the machine is too slow each time");
}

#[track_caller]
fn held(lab: &Lab, provider: &'static str) -> Recorded {
    held_beside(lab, provider, |_| Vec::new())
}

/// The processes that the recorder has started.
fn guards(recorded: &Recorded) -> Vec<u32> {
    let children = format!("/proc/{0}/task/{0}/children", recorded.recorder.pid());
    let children = fs::read_to_string(children).expect("children of the recorder");
    let children = children.split_whitespace();
    children.filter_map(|pid| pid.parse().ok()).collect()
}

/// The process got a signal that stops it while it was held, and stays stopped until it is continued. Returns what it did before that.
#[track_caller]
fn stays_stopped(mut recorded: Recorded) -> (Option<String>, Finished) {
    recorded.recorder.signal("CONT");
    let answer = recorded.process.line_within(LONG);
    std::thread::sleep(Duration::from_millis(100));
    assert!(recorded.is_stopped());
    recorded.process.signal("CONT");
    assert!(answer.is_some() || recorded.process.line().is_some());
    (answer, recorded.recorder.stop())
}

#[test]
fn who_is_stopped_meanwhile_stays_stopped() {
    let lab = Lab::privileged();
    let recorded = held(&lab, "-DPROVIDER=nogap_left");
    recorded.process.signal("STOP");
    let (answer, ended) = stays_stopped(recorded);
    assert_eq!(answer, None);
    assert!(ended.stderr.contains(UNHELD), "{ended:?}");
}

/// `Ctrl-Z`, which a process may handle, too: it gets the signal when it goes on, and may do something before.
#[test]
fn who_is_suspended_meanwhile_stays_stopped() {
    let lab = Lab::privileged();
    let recorded = held(&lab, "-DPROVIDER=nogap_suspended");
    recorded.process.signal("TSTP");
    stays_stopped(recorded);
}

/// It goes on at once, and what may be missing is said.
#[test]
fn who_is_continued_meanwhile_goes_on() {
    let lab = Lab::privileged();
    let mut recorded = held(&lab, "-DPROVIDER=nogap_continued");
    recorded.process.signal("CONT");
    assert!(recorded.process.line().is_some());
    // The user stops it again: that is not ended.
    recorded.process.signal("STOP");
    recorded.recorder.signal("CONT");
    assert_eq!(recorded.process.line_within(LONG), None);
    assert!(recorded.is_stopped());
    recorded.process.signal("CONT");
    recorded.process.say("hit 1");
    assert!(recorded.process.line().is_some());
    let ended = recorded.recorder.stop();
    assert!(ended.stderr.contains(UNHELD), "{ended:?}");
}

/// Guards that are killed are replaced, and until then the recorder itself continues processes.
#[test]
fn none_stays_stopped_without_guard() {
    let lab = Lab::privileged();
    let mut recorded = held(&lab, "-DPROVIDER=nogap_unguarded");
    for guard in guards(&recorded) {
        signal(guard, "KILL");
    }
    recorded.recorder.signal("CONT");
    assert!(recorded.process.line_within(LONG).is_some());
    recorded.recorder.stop();
}

#[test]
fn none_stays_stopped_without_recorder_and_guard() {
    let lab = Lab::privileged();
    // Stopped, they let no process go on.
    let mut recorded = held_beside(&lab, "-DPROVIDER=nogap_healed", guards);
    let guards = guards(&recorded);
    assert!(!guards.is_empty());
    guards.iter().for_each(|guard| signal(*guard, "KILL"));
    recorded.recorder.signal("KILL");
    recorded.recorder.finish();
    // Any recorder of the host may heal before. The exit status also depends on recorders that other tests killed.
    lab.usdtrec(["doctor", "--heal"]);
    assert!(recorded.process.line().is_some());
}

/// A tracer is told of no signal of ours. Where threads are held in the kernel, no hit is missed then either.
#[test]
fn who_is_traced_is_not_stopped() {
    let lab = Lab::privileged();
    let tracer = Build::USUAL.make(&lab, "traced.c", "traced");
    let program = early(&lab, &["-O1", "-DPROVIDER=nogap_traced"], "early");
    let command = [&tracer, &program].map(|path| path.to_str().expect("a path"));
    for way in ways(&lab) {
        let ended = record(&lab, way, "nogap_traced:*", &command);
        assert_eq!(ended.stdout, "stops 0, status 0\n", "{ended:?}");
        let is_unheld = ended.stderr.contains(UNHELD);
        assert!(is_unheld || *way != STOPPED, "{ended:?}");
        assert!(is_unheld || lab.events("trace").len() == 2, "{ended:?}");
    }
}

/// Who could not continue processes of others does not stop any.
#[test]
fn without_the_right_to_continue_none_is_stopped() {
    let lab = Lab::privileged();
    need_tool("setpriv");
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    for option in [STOPPED] {
        let mut command = lab.at_home(Path::new("setpriv"), ["--bounding-set=-kill", usdtrec]);
        command.args(["record", option, "-e", "nogap:*", "--", "true"]);
        run(command).exits(1).complains("without CAP_KILL");
    }
}

/// Which of both is done is said at the start.
#[test]
fn how_threads_are_held_is_said() {
    let lab = Lab::privileged();
    let program = early(&lab, &["-O1", "-DPROVIDER=nogap_said"], "early");
    let program = program.to_str().expect("a path");
    let said = |way: &str| record(&lab, way, "nogap_said:*", &[program]).stderr;
    let (held, stopped) = (
        "--no-gap: threads that map new files are held in the kernel",
        "--no-gap: processes that map new files are stopped (SIGSTOP)",
    );
    assert!(said(STOPPED).contains(stopped));
    let usual = if kernel_holds() { held } else { stopped };
    let text = said("--no-gap");
    assert!(text.contains(usual), "{text}");
    assert!(said("--no-gap=auto").contains(usual));
}

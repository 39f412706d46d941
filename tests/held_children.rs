//! Processes that recorded ones start are held until they have probes: no hit of theirs is missed, and none stays held.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Build, Finished, Lab, Process, Recorder, Ticker, test};
use crate::other_processes::kernel_holds;

/// The values of the hits in a trace, sorted.
pub(crate) fn recorded(lab: &Lab) -> Vec<i128> {
    let mut values: Vec<i128> = lab
        .events("trace")
        .iter()
        .map(|event| event.integer(1))
        .collect();
    values.sort_unstable();
    values
}

/// What testdata/targets/forks.c printed before each hit, sorted.
#[track_caller]
fn printed(finished: &Finished) -> Vec<i128> {
    assert!(finished.stdout.contains("died 0"), "{finished:?}");
    let lines = finished.stdout.lines();
    let values = lines.filter_map(|line| line.strip_prefix("fire ")?.parse().ok());
    let mut values: Vec<i128> = values.collect();
    values.sort_unstable();
    values
}

const EXACT: [&str; 5] = ["--engine", "bpf-multi", "-v", "-o", "trace"];

/// What a recorder reports that was too slow to hold a process until it had probes: a process is held for two seconds at most.
pub(crate) const RAN_BEFORE: &str = "may have run without probes";

/// Tries again while an attempt returns `false`: a recorder reported that it was too slow.
#[track_caller]
pub(crate) fn until_fast_enough(mut attempt: impl FnMut() -> bool) {
    let is_fast = (0..10).any(|_| attempt());
    assert!(is_fast, "the machine is too slow each time");
}

/// Threads that fork at once, grandchildren, `vfork` and `execve`, and a thread that executes in place of the recorded process.
#[test]
fn every_way_to_begin() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "forks.c", "forks");
    for threads in ["0", "1", "8"] {
        until_fast_enough(|| begin_in_every_way(&lab, &program, threads));
    }
}

/// Records `forks THREADS`. Returns `false` if the recorder reports that it was too slow: then hits may be missing.
fn begin_in_every_way(lab: &Lab, program: &Path, threads: &str) -> bool {
    let event = format!("forks:hit@{}", program.display());
    let mut target = Command::new(program);
    target.arg(threads);
    let mut target = Process::spawn(target);
    target.line();
    let pid = target.pid().to_string();
    let recorder = Recorder::start(lab, [&EXACT[..], &["-p", &pid, "-e", &event]].concat());
    target.say("go");
    let target = target.finish().success();
    let ended = recorder.finish().success().complains(" 0 lost");
    let is_apart = ended.stderr.contains("and their children alone");
    assert_eq!(is_apart, kernel_holds(), "{ended:?}");
    let (found, hits) = (recorded(lab), printed(&target));
    if ended.stderr.contains(RAN_BEFORE) {
        assert!(found.iter().all(|value| hits.contains(value)), "{found:?}");
        return false;
    }
    // Its first hit was before the recording.
    assert_eq!(found, hits[1..], "{threads} threads: {ended:?}");
    assert!(
        !ended.stderr.contains("its first thread ended"),
        "{ended:?}"
    );
    true
}

/// A ticker, and a recorder of it that is stopped.
fn stopped() -> (Lab, Ticker, Recorder) {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let (pid, event) = (target.pid().to_string(), target.event("tick"));
    let recorder = Recorder::start(&lab, [&EXACT[..], &["-p", &pid, "-e", &event]].concat());
    recorder.signal("STOP");
    (lab, target, recorder)
}

/// A recorder that does not plant holds no process for ever, and reports what it may have missed.
#[test]
fn not_for_ever() {
    let (lab, mut target, recorder) = stopped();
    let printed = target.hit("fork 3").len();
    recorder.signal("CONT");
    let ended = recorder.stop();
    if kernel_holds() {
        assert!(ended.stderr.contains(RAN_BEFORE), "{ended:?}");
        // Readers of the trace know it, too.
        lab.usdtrec(["report", "-i", "trace"]).complains(RAN_BEFORE);
        let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
        assert!(report.stdout.contains("unattached_children"), "{report:?}");
    } else {
        assert_eq!(lab.events("trace").len(), printed);
    }
}

/// When the recorder is killed while a process is held, it goes on.
#[test]
fn not_without_recorder() {
    let (_lab, mut target, recorder) = stopped();
    target.say("fork 3");
    if kernel_holds() {
        let answer = target.line_within(Duration::from_millis(100));
        assert_eq!(answer, None, "the child is not held");
    }
    recorder.signal("KILL");
    recorder.finish();
    assert!(target.line().is_some_and(|line| line.starts_with("fire ")));
    while target.line().is_some_and(|line| line != "done") {}
    target.hit("fork 3");
    assert_eq!(target.semaphores().0, 0);
}

/// How many uprobe_multi links a process has open.
fn links_of(pid: u32) -> usize {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("our own child");
    let infos = infos.flatten().map(|info| fs::read_to_string(info.path()));
    infos
        .flatten()
        .filter(|info| info.contains("link_type:\tuprobe_multi"))
        .count()
}

/// What a process maps after the end of its first thread, by which the kernel knows it, is recorded.
#[test]
fn after_the_first_thread() {
    let lab = Lab::privileged();
    let library = Build {
        compiler: "gcc",
        options: &["-O2", "-shared", "-fPIC"],
    };
    let program = Build::USUAL.make(&lab, "forks.c", "forks");
    let library = library.make(&lab, "library.c", "library.so");
    let mut target = Process::spawn({
        let mut target = Command::new(&program);
        target.arg("left").arg(&library);
        target
    });
    let (pid, event) = (
        target.pid().to_string(),
        format!("*:loaded@{}", library.display()),
    );
    let recorder = Recorder::start(&lab, [&EXACT[..], &["-p", &pid, "-e", &event]].concat());
    let before = links_of(recorder.pid());
    target.say("end");
    let deadline = Instant::now() + Duration::from_secs(240);
    while kernel_holds() && links_of(recorder.pid()) == before {
        assert!(Instant::now() < deadline, "nothing more is planted");
        sleep(Duration::from_millis(10));
    }
    target.say("load");
    target.finish().success();
    recorder.finish().success().complains(" 0 lost");
    assert_eq!(recorded(&lab), [5]);
}

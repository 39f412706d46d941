//! Who is recorded: `-a`, `-p`, `-t`, `-C`, `-- CMD`, and recorders side by side.

use std::fs;
use std::process::Command;

use crate::common::{Build, Event, Lab, Process, Recorder, Ticker, test};

/// Counter and thread of each recorded tick, as the ticker prints them.
fn ticks(events: &[Event]) -> Vec<(i128, i128)> {
    events
        .iter()
        .map(|event| {
            assert_eq!(event.event, "sdt_ticker:tick");
            assert_eq!(event.integer(2), i128::from(event.tid));
            (event.integer(1), event.integer(2))
        })
        .collect()
}

#[test]
fn all_processes() {
    let lab = Lab::privileged();
    let mut one = Ticker::start(&lab);
    let mut other = Ticker::again(one.program());
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &one.event("tick")]);
    let mut printed = one.hit("fire 20");
    let mut later = Ticker::again(one.program());
    printed.extend(other.hit("fire 30"));
    printed.extend(later.hit("fire 10"));
    recorder.stop();
    assert_eq!(ticks(&lab.events("trace")), printed);
}

/// `-p` is the process with the threads and children that it starts later, and no other of the same program.
#[test]
fn one_process() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let mut stranger = Ticker::again(target.program());
    target.keep_thread();
    let pid = target.pid().to_string();
    let recorder = Recorder::start(
        &lab,
        ["-p", &pid, "-o", "trace", "-e", &target.event("tick")],
    );
    let mut printed = Vec::new();
    for command in ["fire 5", "kept 6", "thread 7", "fork 8", "exec 9"] {
        printed.extend(target.hit(command));
        stranger.hit("fire 5");
    }
    recorder.stop();
    let events = lab.events("trace");
    assert_eq!(ticks(&events), printed);
    let own = events
        .iter()
        .filter(|event| event.pid == target.pid())
        .count();
    assert_eq!(
        own, 18,
        "hits of the process itself; the others are its children's"
    );
    let workers = events.iter().filter(|event| event.comm == "worker").count();
    assert_eq!(workers, 7, "hits of the thread that renamed itself");
}

/// `-p` of a shell that has started a program, which has started three children.
#[test]
fn children_that_exist_already() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "forks.c", "forks");
    let event = format!("sdt_forks:hit@{}", program.display());
    for (alone, said) in [(false, Some("4 children")), (true, None)] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" many 3; exit"]).arg(&program);
        let mut shell = Process::spawn(shell);
        shell.say("start");
        while shell.line().expect("a line") != "ready" {}
        let pid = shell.pid().to_string();
        let options = ["record", "-p", &pid, "-o", "trace", "-e", &event];
        let alone = alone.then_some("-i");
        let mut recorder = Process::spawn(lab.command(options.into_iter().chain(alone)));
        if let Some(children) = said {
            let line = recorder.until_error_line("recorded, too");
            let expected =
                format!("usdtrec: {children} of {pid} are recorded, too (-i excludes them)");
            assert_eq!(line, expected);
        }
        recorder.until_error_line("[ usdtrec record:");
        shell.say("end");
        shell.finish().success();
        // The recorder ends with them.
        recorder
            .finish()
            .success()
            .complains(&format!("process {pid} and what it started have ended"));
        let mut hits = lab.events("trace");
        hits.sort_by_key(|hit| hit.integer(1));
        let hits: Vec<i128> = hits.iter().map(|hit| hit.integer(1)).collect();
        let expected: &[i128] = if said.is_some() {
            &[10_000, 10_001, 10_002]
        } else {
            &[]
        };
        assert_eq!(hits, expected);
        fs::remove_file(lab.file("trace")).expect("the trace");
    }
}

/// Why the processes of `-p` ended, which are children of this test.
#[test]
fn why_named_processes_ended() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let start = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("read line; {script}")]);
        Process::spawn(shell)
    };
    let record = |pids: &str| {
        let options = ["record", "-p", pids, "-o", "trace", "-e", &event];
        let mut recorder = Process::spawn(lab.command(options));
        recorder.until_error_line("[ usdtrec record:");
        recorder
    };
    for (script, said) in [
        ("exit 0", "exited with status 0"),
        ("exit 3", "exited with status 3"),
        ("kill -KILL $$", "was killed by signal 9 (SIGKILL)"),
        ("kill -SEGV $$", "was killed by signal 11 (SIGSEGV)"),
    ] {
        let mut shell = start(script);
        let pid = shell.pid();
        let recorder = record(&pid.to_string());
        shell.say("");
        // This does not wait for the process before the recorder has ended.
        let why = format!("process {pid} and what it started have ended; {pid} {said}");
        recorder.finish().success().complains(&why);
    }
    let mut shells = ["exit 1", "kill $$"].map(start);
    let pids = shells.each_ref().map(Process::pid);
    let recorder = record(&pids.map(|pid| pid.to_string()).join(","));
    for shell in &mut shells {
        shell.say("");
    }
    let [first, second] = pids;
    recorder.finish().success().complains(&format!(
        "the processes and what they started have ended; {first} exited with status 1, {second} was killed by signal 15 (SIGTERM)"
    ));
}

#[test]
fn two_processes() {
    let lab = Lab::privileged();
    let mut one = Ticker::start(&lab);
    let mut other = Ticker::again(one.program());
    let mut stranger = Ticker::again(one.program());
    let pids = format!("{},{}", one.pid(), other.pid());
    let recorder = Recorder::start(&lab, ["-p", &pids, "-o", "trace", "-e", &one.event("tick")]);
    let mut printed = one.hit("fire 5");
    stranger.hit("fire 5");
    printed.extend(other.hit("fire 5"));
    recorder.stop();
    assert_eq!(ticks(&lab.events("trace")), printed);
}

#[test]
fn one_thread() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let tid = target.keep_thread().to_string();
    let recorder = Recorder::start(
        &lab,
        ["-t", &tid, "-o", "trace", "-e", &target.event("tick")],
    );
    target.hit("fire 5");
    let printed = target.hit("kept 6");
    target.hit("fork 3");
    recorder.stop();
    assert_eq!(printed.len(), 6);
    assert_eq!(ticks(&lab.events("trace")), printed);
}

#[test]
fn one_cpu() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    target.run_on(1);
    let recorder = Recorder::start(
        &lab,
        ["-a", "-C", "0", "-o", "trace", "-e", &target.event("tick")],
    );
    target.hit("fire 7");
    target.run_on(0);
    let printed = target.hit("fire 8");
    target.run_on(1);
    target.hit("fire 9");
    recorder.stop();
    let events = lab.events("trace");
    assert!(events.iter().all(|event| event.cpu == 0));
    assert_eq!(ticks(&events), printed);
}

/// `-- CMD` is the command with its children, and no other of the same program.
#[test]
fn command() {
    let lab = Lab::privileged();
    let mut stranger = Ticker::start(&lab);
    let path = stranger.program().to_str().expect("a path").to_owned();
    let script = format!("{path} 5; (exec {path} 6); {path} 7 & wait");
    let event = stranger.event("tick");
    let mut record = lab.command(["record", "-o", "trace", "-e", &event, "--"]);
    record.args(["sh", "-c", &script]);
    let record = Process::spawn(record);
    stranger.hit("fire 9");
    let printed = record.finish().success().stdout;
    let recorded = ticks(&lab.events("trace"));
    assert_eq!(printed.lines().count(), 18);
    for ((counter, tid), line) in recorded.iter().zip(printed.lines()) {
        assert!(
            line.starts_with(&format!("fire tick {counter} {tid} ")),
            "{counter} {tid}, {line}"
        );
    }
}

/// Hits that ask the semaphore first are there while a recorder is, and only then.
#[test]
fn semaphore() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("guarded");
    assert_eq!(target.tell("guarded 3"), [""; 0]);
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    assert_eq!(target.tell("guarded 3").len(), 3);
    recorder.stop();
    assert_eq!(target.tell("guarded 3"), [""; 0]);
    let recorded: Vec<i128> = lab
        .events("trace")
        .iter()
        .map(|event| event.integer(1))
        .collect();
    assert_eq!(recorded, [0, 3, 6]);
}

/// Two recorders on one probe each get every hit, also when one of them ends earlier.
#[test]
fn two_recorders() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let long = Recorder::start(&lab, ["-a", "-o", "long", "-e", &event]);
    let mut printed = target.hit("fire 5");
    let short = Recorder::start(&lab, ["-a", "-o", "short", "-e", &event]);
    let both = target.hit("fire 6");
    printed.extend(&both);
    short.stop();
    assert_ne!(
        target.semaphores().0,
        0,
        "the other recorder is still there"
    );
    printed.extend(target.hit("fire 7"));
    long.stop();
    assert_eq!(target.semaphores().0, 0);
    assert_eq!(ticks(&lab.events("short")), both);
    assert_eq!(ticks(&lab.events("long")), printed);
}

/// Two recorders that write to one name: the later one takes the name, the earlier one goes on under the old one's.
#[test]
fn two_recorders_of_one_name() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let first = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    let mut printed = target.hit("fire 5");
    let second = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    let both = target.hit("fire 6");
    printed.extend(&both);
    first.stop();
    second.stop();
    assert_eq!(ticks(&lab.events("trace.old")), printed);
    assert_eq!(ticks(&lab.events("trace")), both);
    for trace in ["trace", "trace.old"] {
        lab.usdtrec(["report", "-i", trace]).success().silent();
    }
}

/// A target that is killed costs nothing of what it did before.
#[test]
fn target_dies() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (pid, event) = (target.pid().to_string(), target.event("tick"));
    let recorder = Recorder::start(&lab, ["-p", &pid, "-o", "trace", "-e", &event]);
    let mut printed = target.hit("fire 5");
    printed.extend(target.last_words("kill"));
    recorder.stop();
    assert_eq!(printed.len(), 6);
    assert_eq!(ticks(&lab.events("trace")), printed);
}

/// A 32-bit and a 64-bit program at once, each with its own registers.
#[test]
fn two_architectures() {
    let lab = Lab::privileged();
    let narrow = Build {
        compiler: "gcc",
        options: &["-O0", "-m32"],
    };
    let narrow = narrow.make(&lab, "ticker.c", "narrow");
    let mut wide = Ticker::start(&lab);
    let mut narrow = Ticker::again(&narrow);
    let events = [wide.event("tick"), narrow.event("tick")].join(",");
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &events]);
    let mut printed = wide.hit("fire 3");
    printed.extend(narrow.hit("fire 4"));
    printed.extend(wide.hit("fire 5"));
    recorder.stop();
    assert_eq!(ticks(&lab.events("trace")), printed);
}

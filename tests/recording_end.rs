//! Recordings end when they are asked to, whatever their command, the kernel, or the readers of their output do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{
    Build, Closing, Finished, Lab, Process, Recorder, Ticker, events_of_recorder, run, signal,
    test, wait_until,
};

/// Far above what an end takes on a busy machine, far below what any of the things waited for takes by itself.
const END_LIMIT: Duration = Duration::from_secs(200);

/// Whether a process exists, and is no zombie.
fn exists(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// The number after a word of the recorder's messages.
#[track_caller]
fn number_after(text: &str, word: &str) -> u32 {
    let rest = text.split(word).nth(1).unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no number after {word:?} in:\n{text}"))
}

/// Records a command of a shell for a second, and checks that the trace is complete.
#[track_caller]
fn record_a_second_of(lab: &Lab, script: &str) -> Finished {
    let ticker = Build::USUAL.make(lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", ticker.display());
    let script = format!("{} 20 >/dev/null; {script}", ticker.display());
    let options = [
        "record",
        "--duration",
        "1s",
        "-o",
        "trace",
        "-e",
        &event,
        "--",
        "sh",
        "-c",
    ];
    let begun = Instant::now();
    let mut command = lab.command(options);
    command.arg(&script);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("20 events, 0 lost");
    let ended = recorder.finish();
    assert!(begun.elapsed() < END_LIMIT, "{:?}", begun.elapsed());
    assert_eq!(lab.events("trace").len(), 20);
    ended
}

/// A command that is stopped gets SIGTERM only when it is continued.
#[test]
fn a_stopped_command_is_ended() {
    let lab = Lab::privileged();
    let ended = record_a_second_of(&lab, "kill -STOP $$; sleep 1000");
    ended.success();
}

/// SIGTERM of anybody else is the command's own status.
#[test]
fn a_command_that_another_process_ends_has_failed() {
    let lab = Lab::privileged();
    let ticker = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", ticker.display());
    let script = format!("{} 20 >/dev/null; kill -TERM $$", ticker.display());
    for verb in ["record", "trace", "stat"] {
        let output = ["-o", "trace"].into_iter().filter(|_| verb == "record");
        let options = [verb, "-e", &event].into_iter().chain(output);
        let words = options.chain(["--", "sh", "-c", &script]);
        lab.usdtrec(words.collect::<Vec<_>>()).exits(143);
    }
}

/// A command that ignores SIGTERM is left running, and is named.
#[test]
fn a_command_that_ignores_the_end_is_left() {
    let lab = Lab::privileged();
    let script = "trap '' TERM; exec >/dev/null 2>&1; while :; do sleep 1; done";
    let ended = record_a_second_of(&lab, script);
    let ended = ended.success().complains("is left running");
    let pid = number_after(&ended.stderr, "the command (pid ");
    assert!(exists(pid));
    signal(pid, "KILL");
}

/// A command whose children keep its standard output open has ended nevertheless.
#[test]
fn children_of_the_command_do_not_hold_the_recorder() {
    let lab = Lab::privileged();
    let ended = record_a_second_of(&lab, "sleep 1000 >/dev/null 2>&1 & echo started $!");
    let child = number_after(&ended.success().stdout, "started ");
    assert!(exists(child));
    signal(child, "KILL");
}

/// Two signals in a row end a recording as one does.
#[test]
fn two_signals_at_once_end_it_in_order() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    for _ in 0..10 {
        let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
        target.hit("fire 7");
        recorder.signal("INT");
        recorder.signal("INT");
        recorder.finish().success().complains("7 events, 0 lost");
        assert_eq!(lab.events("trace").len(), 7);
    }
    wait_until("the end of the probes", || target.semaphores().0 == 0);
}

/// Starts a recording of many probes, whose removal takes the kernel long.
fn record_many(lab: &Lab, engine: &str, probes: &str) -> Process {
    let program = Build::USUAL.make(lab, "many.c", "many");
    let event = format!("sdt_many:{probes}@{}", program.display());
    let mut command = lab.command(["record", "--engine", engine, "-a", "-o", "trace"]);
    command.args(["-e", &event]);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record:");
    recorder
}

/// The recorder has ended, and a helper goes on until the probes are removed.
#[track_caller]
fn leaves_the_probes_to_a_helper(lab: &Lab, recorder: Process) {
    let ended = recorder.finish().success();
    let ended = ended.complains("continues closing them");
    assert!(lab.events("trace").is_empty());
    let helper = number_after(&ended.stderr, "; process ");
    wait_until("the end of the helper", || !exists(helper));
}

/// While the kernel takes its time with the probes, a second signal ends the recorder, and the probes go all the same.
#[test]
fn a_second_signal_leaves_the_probes_to_the_background() {
    let lab = Lab::privileged();
    let mut recorder = record_many(&lab, "perf-pmu", "p0*");
    recorder.signal("INT");
    recorder.until_error_line(" events, 0 lost");
    recorder.signal("INT");
    leaves_the_probes_to_a_helper(&lab, recorder);
}

/// One signal is enough: after five seconds the recorder leaves the rest of the probes, which would take the kernel longer.
#[test]
fn a_signal_that_ends_it_is_not_followed_by_a_long_wait() {
    let lab = Lab::privileged();
    let recorder = record_many(&lab, "perf-pmu", "p[01]*");
    recorder.signal("INT");
    leaves_the_probes_to_a_helper(&lab, recorder);
}

/// So it is if the process that removes tracefs events was killed.
#[test]
fn tracefs_events_go_although_their_guard_was_killed() {
    let lab = Lab::privileged();
    let mut recorder = record_many(&lab, "perf-tracefs", "p0*");
    let pid = recorder.pid();
    let has_events = || !events_of_recorder(pid).is_empty();
    assert!(has_events());
    let children = format!("/proc/{0}/task/{0}/children", recorder.pid());
    let children = fs::read_to_string(children).expect("children of the recorder");
    for guard in children.split_whitespace() {
        signal(guard.parse().expect("a process id"), "KILL");
    }
    recorder.signal("INT");
    recorder.until_error_line(" events, 0 lost");
    recorder.signal("INT");
    recorder
        .finish()
        .success()
        .complains("continues closing them");
    wait_until("the end of the tracefs events", || !has_events());
}

/// A guard that was killed is replaced, so that what a killed recorder leaves is cleared up still.
#[test]
fn a_guard_that_was_killed_is_replaced() {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let event = target.event("tick");
    let command = lab.command([
        "record",
        "--engine=perf-tracefs",
        "-a",
        "-o",
        "trace",
        "-e",
        &event,
    ]);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record:");
    let pid = recorder.pid();
    let children = || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.expect("children of the recorder");
        let pids = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        // Those that open files for it are no guards.
        let is_helper = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(b"serve-files\0")
        };
        pids.filter(|pid| !is_helper(pid)).collect::<Vec<u32>>()
    };
    let guards = children();
    assert_eq!(guards.len(), 1);
    signal(guards[0], "KILL");
    recorder.until_error_line("was killed; another one was started");
    let others = children();
    assert!(others.len() == 1 && others != guards);
    recorder.signal("KILL");
    recorder.finish();
    wait_until("the end of the other guard", || !exists(others[0]));
    assert!(events_of_recorder(pid).is_empty());
}

/// Signals that `perf record` survives, and others that would end a process without a word.
#[test]
fn no_signal_ends_a_recording_without_a_word() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    for (name, is_survived) in [
        ("USR1", true),
        ("USR2", true),
        ("ALRM", false),
        ("VTALRM", false),
        ("PROF", false),
        ("XCPU", false),
        ("HUP", false),
        ("QUIT", false),
        ("IO", false),
        ("PWR", false),
        ("STKFLT", false),
        // The first and the last one of real time that programs may use.
        ("35", false),
        ("64", false),
    ] {
        let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
        recorder.signal(name);
        if is_survived {
            target.hit("fire 5");
            recorder.signal("TERM");
        }
        let ended = recorder.finish().success();
        let expected = if is_survived {
            "5 events, 0 lost"
        } else {
            "0 events, 0 lost"
        };
        assert!(ended.stderr.contains(expected), "{name}: {}", ended.stderr);
    }
}

/// `nohup` means what it says.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let script = "trap '' HUP; exec \"$0\" record -a -o trace -e \"$1\"";
    let words = ["-c", script, env!("CARGO_BIN_EXE_usdtrec"), &event];
    let mut recorder = Process::spawn(lab.at_home(Path::new("sh"), words));
    recorder.until_error_line("[ usdtrec record:");
    recorder.signal("HUP");
    target.hit("fire 5");
    recorder.signal("TERM");
    recorder.finish().success().complains("5 events, 0 lost");
}

/// Whether the first thread of a process writes to standard error, or waits for another thread that does: one that says what is waited for.
fn is_printing(pid: u32) -> bool {
    let calls = |path: &str, start: &str| {
        fs::read_to_string(path).is_ok_and(|call| call.starts_with(start))
    };
    let own = format!("/proc/{pid}/syscall");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let mut threads = threads.flatten().flatten();
    let mut other_writes =
        || threads.any(|thread| calls(&format!("{}/syscall", thread.path().display()), "1 0x2 "));
    // write(2), and futex(2) on x86-64.
    calls(&own, "1 0x2 ") || calls(&own, "202 ") && other_writes()
}

/// A signal before or while probes are planted is obeyed then, and what is planted goes again.
#[test]
fn a_signal_ends_the_planting() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "many.c", "many");
    let event = format!("sdt_many:p[01]*@{}", program.display());
    for (engine, name) in [
        ("perf-pmu", "TERM"),
        ("bpf-perf", "INT"),
        ("perf-tracefs", "HUP"),
    ] {
        let (told, mut full) = std::io::pipe().expect("a pipe");
        full.write_all(&[b'\n'; 65_536]).expect("room in the pipe");
        let mut command = lab.command(["record", "--engine", engine, "-a", "-o", "trace"]);
        command.args(["-e", &event]).stderr(full);
        let mut recorder = command.spawn().expect("the recorder");
        drop(command);
        // It cannot go on before what it says of the cost has been read.
        wait_until("the announcement", || is_printing(recorder.id()));
        signal(recorder.id(), name);
        let told = std::io::read_to_string(told).expect("text");
        let status = recorder.wait().expect("our own child");
        assert_eq!(status.code(), Some(1), "{engine}: {told}");
        assert!(told.contains("takes the kernel about"), "{engine}: {told}");
        assert!(told.contains("before recording began"), "{engine}: {told}");
        assert!(
            !told.contains("continues removing"),
            "nothing was attached yet: {told}"
        );
        assert!(!lab.file("trace").exists(), "{engine}: {told}");
    }
}

/// Number of perf events that a process has open. Of descriptors alone, a process that is about to execute its program has those of its parent.
fn perf_events(pid: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
    let files = descriptors.flatten().flatten();
    let files = files.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    files
        .filter(|file| file.as_os_str() == "anon_inode:[perf_event]")
        .count()
}

/// A signal at any moment of the planting ends it soon, and all that is planted goes.
#[test]
fn a_signal_amid_the_planting_leaves_nothing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "many.c", "many");
    let event = format!("sdt_many:p0*@{}", program.display());
    let mut groups = Vec::new();
    for engine in ["perf-pmu", "bpf-perf", "perf-tracefs"] {
        let mut command = lab.command(["record", "--engine", engine, "-a", "-o", "trace"]);
        command.args(["-e", &event]);
        let recorder = Process::spawn(command);
        groups.push(recorder.pid());
        wait_until("the planting", || perf_events(recorder.pid()) > 30);
        recorder.signal("TERM");
        std::thread::sleep(Duration::from_secs(1));
        recorder.signal("TERM");
        let asked = Instant::now();
        let ended = recorder.finish();
        assert!(
            asked.elapsed() < END_LIMIT,
            "{engine}: {:?}",
            asked.elapsed()
        );
        assert!(ended.status.code().is_some(), "{}", ended.stderr);
    }
    wait_until("the end of the tracefs events", || {
        let mut groups = groups.iter();
        groups.all(|recorder| events_of_recorder(*recorder).is_empty())
    });
}

/// A trace that was deleted while it was written is not said to be written.
#[test]
fn a_deleted_trace_is_a_failure() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    target.hit("fire 5");
    fs::remove_file(lab.file("trace")).expect("the trace");
    recorder.signal("INT");
    let ended = recorder.finish().exits(1).complains("deleted");
    let path = lab.path().canonicalize().expect("a path").join("trace");
    assert!(
        ended.stderr.contains(&path.display().to_string()),
        "{}",
        ended.stderr
    );
    assert_eq!(target.semaphores().0, 0);
}

/// A program of two threads that hits 60,000 times each, once it is said to go.
fn start_hot(lab: &Lab) -> (Process, String) {
    let program = Build::USUAL.make(lab, "hot.c", "hot");
    let mut command = Command::new(&program);
    command.args(["60000", "2"]);
    let event = format!("sdt_hot:req@{}", program.display());
    (Process::spawn(command), event)
}

/// A reader that does not read holds up no program, nor the recorder when it is to end.
#[test]
fn a_reader_that_does_not_read_holds_up_no_process() {
    for (verb, output) in [("record", "-o"), ("trace", "-F")] {
        let lab = Lab::privileged();
        let (mut hot, event) = start_hot(&lab);
        let (unread, output_end) = std::io::pipe().expect("a pipe");
        let (told, errors) = std::io::pipe().expect("a pipe");
        let value = if verb == "record" {
            "-"
        } else {
            "comm,event,args"
        };
        let mut command = lab.command([verb, "-m", "64K", "-a", output, value]);
        command
            .args(["-e", &event])
            .stdout(output_end)
            .stderr(errors);
        let mut recorder = command.spawn().expect("the recorder");
        drop(command);
        let mut told = BufReader::new(told);
        let mut line = String::new();
        while !line.contains(&format!("[ usdtrec {verb}:")) {
            line.clear();
            assert!(matches!(told.read_line(&mut line), Ok(1..)), "it begins");
        }
        hot.say("go");
        hot.finish().success();
        signal(recorder.id(), "TERM");
        if verb == "trace" {
            // What was captured may be read still; with another signal the recorder does not wait for that.
            std::thread::sleep(Duration::from_secs(4));
            signal(recorder.id(), "TERM");
        }
        let asked = Instant::now();
        let said = std::io::read_to_string(told).expect("text");
        let status = recorder.wait().expect("our own child");
        assert!(asked.elapsed() < END_LIMIT, "{verb}: {:?}", asked.elapsed());
        assert_ne!(status.code(), Some(0), "{verb}: {said}");
        drop(unread);
    }
}

/// A stopped recorder holds up no process, and counts what is lost meanwhile.
#[test]
fn a_stopped_recorder_holds_up_no_process() {
    let lab = Lab::privileged();
    let (mut hot, event) = start_hot(&lab);
    let options = ["-m", "64K", "-a", "-o", "trace", "-e", &event];
    let recorder = Recorder::start(&lab, options);
    recorder.signal("STOP");
    hot.say("go");
    hot.finish().success();
    recorder.signal("CONT");
    let told = recorder.stop().stderr;
    let Closing { events, lost } = Closing::parse(&told);
    assert!(lost > 0, "{told}");
    assert_eq!(events + lost, 120_000, "{told}");
    assert_eq!(lab.events("trace").len() as u64, events);
}

/// New files begin while hits are taken: none is lost without being counted, and every hit has the name of its process.
#[test]
fn new_files_begin_beside_the_recording() {
    let lab = Lab::privileged();
    let (mut hot, event) = start_hot(&lab);
    let options = ["--switch-output=200ms", "-a", "-o", "trace", "-e", &event];
    let recorder = Recorder::start(&lab, options);
    hot.say("go");
    hot.finish().success();
    let told = recorder.stop().stderr;
    let lost = Closing::parse(&told).lost;
    let files = (1..).map(|number| format!("trace.{number}"));
    let files: Vec<_> = files.take_while(|name| lab.file(name).exists()).collect();
    let events: Vec<_> = files.iter().flat_map(|name| lab.events(name)).collect();
    assert_eq!(events.len() as u64 + lost, 120_000, "{told}");
    assert!(events.iter().all(|event| event.comm == "hot"));
}

/// The trace is complete; only the disk has not taken it. `fdatasync(2)` is one that never comes back.
#[test]
fn a_disk_that_does_not_answer_is_not_waited_for() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let never = "#include <unistd.h>\nint fdatasync(int fd) { (void)fd; for (;;) pause(); }\n";
    fs::write(lab.file("never.c"), never).expect("a source");
    let arguments = ["-shared", "-fPIC", "-o", "never.so", "never.c"];
    run(lab.at_home(Path::new("gcc"), arguments)).success();
    let event = target.event("tick");
    let mut command = lab.command(["record", "-a", "-o", "trace", "-e", &event]);
    command.env("LD_PRELOAD", lab.file("never.so"));
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record: ");
    target.hit("fire 7");
    recorder.signal("INT");
    recorder.until_error_line("7 events, 0 lost");
    recorder.until_error_line("waiting until it is on disk");
    assert!(recorder.is_running());
    recorder.signal("INT");
    let ended = recorder.finish().success();
    let ended = ended.complains("the trace is complete, but not yet on disk");
    let helper = number_after(&ended.stderr, "; process ");
    assert!(exists(helper));
    signal(helper, "KILL");
    wait_until("the end of the helper", || !exists(helper));
    assert_eq!(lab.events("trace").len(), 7);
}

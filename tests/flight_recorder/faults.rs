//! What goes wrong, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use usdtrec_format::trace::Trace;

use super::{dump, events, files, samples};
use crate::common::{Build, Lab, Process, Recorder, Ticker, copy_program, need_tool, run, test};

/// A file that cannot be written is said, and recording goes on.
#[test]
fn a_full_disk_is_said_and_recording_goes_on() {
    need_tool("prlimit");
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let options = ["-p", &pid, "-e", &tick, "-o", "t.data", "--ring", "1h"];
    let recorder = Recorder::start(&lab, options);
    let limit = |bytes: &str| limit(&recorder, &format!("--fsize={bytes}:unlimited"));
    ticker.hit("fire 10");
    limit("1000");
    let asked = lab.usdtrec(["dump", "-p", &recorder.pid().to_string()]);
    asked.exits(1).complains("File too large");
    assert_eq!(files(lab.path(), "t.data").len(), 0);
    limit("unlimited");
    ticker.hit("fire 5");
    let file = dump(&lab, &recorder);
    assert_eq!(events(&lab, &file).len(), 15);
    recorder
        .stop()
        .complains("no file was written, recording continues")
        .complains("wrote 1 file");
}

/// Sets a limit of a recorder, as prlimit(1) takes it.
fn limit(recorder: &Recorder, limit: &str) {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &recorder.pid().to_string(), limit]);
    run(command).success();
}

/// Killed while it writes, it leaves complete files only.
#[test]
fn a_killed_recorder_leaves_no_part_of_a_file() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    for wait in [0, 1, 2, 4, 8] {
        let options = ["-a", "-e", &event, "-o", "t.data", "-z0", "--ring", "1h"];
        let recorder = Recorder::start(&lab, options);
        let mut command = Command::new(&program);
        command.arg(HITS.to_string());
        let mut hot = Process::spawn(command);
        hot.say("go");
        hot.line();
        recorder.signal("USR2");
        std::thread::sleep(std::time::Duration::from_millis(wait));
        recorder.signal("KILL");
        recorder.finish();
    }
    for file in files(lab.path(), "t.data") {
        let trace = Trace::open(&file).expect("a trace");
        assert!(trace.damage().is_empty(), "{:?}", trace.damage());
        assert_eq!(samples(&file), HITS as u64);
    }
    let left = fs::read_dir(lab.path()).expect("the lab").flatten();
    let left = left.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with('.'))
    });
    assert_eq!(left.count(), 0, "no hidden file is left");
    // Sockets of killed recorders are no recorders.
    lab.usdtrec(["dump", "-p", "1"])
        .exits(1)
        .complains("does not record with --ring");
}

/// Hits of a program.
const HITS: usize = 20_000;

/// The socket of a recorder.
fn socket(pid: &str) -> Option<PathBuf> {
    let mut entries = fs::read_dir("/run/usdtrec").expect("notes").flatten();
    let prefix = format!("usdtrec_{pid}_");
    let is_it = |name: &str| name.starts_with(&prefix) && name.ends_with(".sock");
    let found = entries.find(|entry| entry.file_name().to_str().is_some_and(is_it));
    found.map(|entry| entry.path())
}

/// A recorder that is stopped: `dump` says so, and what to do, and ends. Continued, it answers.
#[test]
fn a_stopped_recorder_is_named() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &tick, "--ring", "1h", "-o", "t.data"]);
    ticker.hit("fire 10");
    let pid = recorder.pid().to_string();
    recorder.signal("STOP");
    let asked = lab.usdtrec(["dump", "-p", &pid]);
    recorder.signal("CONT");
    asked
        .exits(1)
        .complains("has not run for 10 s")
        .complains(&format!("kill -CONT {pid}"));
    let file = dump(&lab, &recorder);
    assert_eq!(events(&lab, &file).len(), 10);
    recorder.stop();
}

/// A client that has no id for the recorder's process waits for its answer all the same.
#[test]
fn a_client_of_another_pid_namespace_gets_the_file() {
    need_tool("unshare");
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let options = ["-p", &pid, "-e", &tick, "-o", "t.data", "--ring", "1h"];
    let recorder = Recorder::start(&lab, options);
    ticker.hit("fire 10");
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    let asked = recorder.pid().to_string();
    let words = ["--pid", "--fork", usdtrec, "dump", "-p", &asked];
    let dumped = run(lab.at_home(Path::new("unshare"), words)).success();
    let file = Path::new(dumped.stdout.trim_end());
    assert_eq!(events(&lab, file).len(), 10);
    recorder.stop();
}

/// Without a descriptor for a connection, the thread that waits for it does not spin, and the request is served when there is one.
#[test]
fn a_recorder_without_descriptors_waits() {
    need_tool("prlimit");
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let pid = ticker.pid().to_string();
    let options = ["-p", &pid, "-e", &tick, "-o", "t.data", "--ring", "1h"];
    let recorder = Recorder::start(&lab, options);
    ticker.hit("fire 10");
    let limit = |most: &str| limit(&recorder, &format!("--nofile={most}:"));
    let before = soft_limit(recorder.pid());
    limit(&next_descriptor(recorder.pid()).to_string());
    let mut command = lab.command(["dump", "-p", &recorder.pid().to_string()]);
    let mut asking = command.spawn().expect("dump runs");
    let ticks = request_ticks(recorder.pid());
    std::thread::sleep(std::time::Duration::from_secs(2));
    let spent = request_ticks(recorder.pid()) - ticks;
    assert!(spent < 50, "{spent} of 200 ticks of a CPU");
    assert!(asking.try_wait().expect("its status").is_none(), "served");
    limit(&before);
    assert!(asking.wait().expect("its status").success());
    let [file] = &files(lab.path(), "t.data")[..] else {
        panic!("not one file");
    };
    assert_eq!(events(&lab, file).len(), 10);
    recorder.stop();
}

/// The number of the next descriptor that a process opens, besides those that it has for a moment.
fn next_descriptor(pid: u32) -> usize {
    let open = |number: &usize| fs::symlink_metadata(format!("/proc/{pid}/fd/{number}")).is_ok();
    let numbers = (0..50).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        (0..).find(|number| !open(number)).expect("a number")
    });
    numbers.min().expect("a number")
}

/// The soft limit of a process's descriptors.
fn soft_limit(pid: u32) -> String {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.expect("a limit").to_owned()
}

/// CPU time of the thread of a recorder that waits for requests, clock ticks.
fn request_ticks(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let stats = tasks.flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(") ")?;
        name.ends_with("(requests").then(|| rest.to_owned())
    });
    let stats: Vec<String> = stats.collect();
    let [stat] = &stats[..] else {
        panic!("{} such threads", stats.len());
    };
    let mut fields = stat.split(' ').skip(11).map(|field| field.parse::<u64>());
    let mut next = || fields.next().expect("a field").expect("a number");
    next() + next()
}

/// What a killed recorder leaves at its socket goes with the next recorder, and `doctor` names it.
#[test]
fn a_killed_recorder_leaves_no_socket() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let start = || Recorder::start(&lab, ["-a", "-e", &tick, "--ring", "1h", "-o", "t.data"]);
    let recorder = start();
    let pid = recorder.pid().to_string();
    // Once it is killed, the recorder of another test may remove it.
    let left = socket(&pid).expect("a socket").display().to_string();
    recorder.signal("KILL");
    recorder.finish();
    // Other tests may start recorders or heal meanwhile.
    let doctor = lab.usdtrec(["doctor"]);
    assert!(
        doctor.stdout.contains(&left) || socket(&pid).is_none(),
        "{}",
        doctor.stdout
    );
    start().stop();
    assert_eq!(socket(&pid), None);
}

/// Another user finds no recorder of root's.
#[test]
fn other_users_cannot_ask() {
    need_tool("setpriv");
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let tick = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &tick, "--ring", "1s"]);
    let pid = recorder.pid().to_string();
    let socket = socket(&pid).expect("a socket");
    // A copy that this user can execute.
    let program = std::env::temp_dir().join(format!("usdtrec-of-nobody-{pid}"));
    copy_program(env!("CARGO_BIN_EXE_usdtrec"), &program);
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups"])
        .arg(&program)
        .args(["dump", "-p", &pid]);
    let asked = run(command);
    fs::remove_file(&program).expect("the copy");
    asked.exits(1).complains("does not record with --ring");
    recorder.stop();
    assert!(fs::metadata(&socket).is_err());
}

#[test]
fn options_without_effect_are_refused() {
    let lab = Lab::new();
    for (options, complaint) in [
        (&["--trigger", "x:y"][..], "--trigger needs --ring"),
        (&["--cooldown", "1s"], "--cooldown needs --ring"),
        (&["--keep", "1"], "--keep needs --ring"),
        (&["--trigger-cmd", "true"], "--ring <TIME[,SIZE]>"),
        (
            &["--switch-output", "--trigger", "x:y"],
            "--switch-output with --switch-max-files",
        ),
        (
            &["--switch-output", "--switch-max-files", "1", "--keep", "1"],
            "--keep needs --trigger",
        ),
        (
            &["--after", "1s"],
            "--after needs --ring, --trigger or --until",
        ),
        (
            &["--trigger-cmd", "true", "--max-size", "1M"],
            "cannot be used with",
        ),
        (&["--ring", "10s", "--switch-output"], "cannot be used with"),
        (
            &["--ring", "10s", "--max-size", "1M"],
            "cannot be used with",
        ),
        (&["--ring", "10s", "-o", "-"], "--ring needs files"),
        (&["--ring", "10s", "-o", "/dev/null"], "--ring needs files"),
        (
            &["--ring", "10s", "--trigger-cmd", "'"],
            "--trigger-cmd: expected a program",
        ),
        (&["--ring", "10M"], "--ring: expected a time"),
        (&["--ring", "10s,1K"], "at least 1M"),
        (
            &["--until", "span:query"],
            "expected a span and its least duration",
        ),
        (&["--ring", "10s", "--trigger", "x:y: arg0 >"], "--trigger"),
    ] {
        let words = ["record", "-a", "-e", "x:y@/nonexistent/program"];
        let refused = lab.usdtrec(words.iter().chain(options));
        assert!(!refused.status.success());
        refused.complains(complaint);
    }
}

/// A trigger that no recorded probe can fire is refused where none can appear, and said where one can.
#[test]
fn triggers_of_other_probes_are_refused_or_said() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let pid = ticker.pid().to_string();
    let tick = ticker.event("tick");
    let words = [
        "record",
        "-p",
        &pid,
        "-e",
        &tick,
        "--ring",
        "1s",
        "--trigger",
        "tick: nothing > 1",
    ];
    lab.usdtrec(words).exits(2).complains("nothing");
    let options = [
        "-p",
        &pid,
        "-e",
        &tick,
        "--ring",
        "1s",
        "--trigger",
        "ticker:tock",
    ];
    let recorder = Recorder::start(&lab, options);
    std::thread::sleep(std::time::Duration::from_millis(300));
    recorder
        .stop()
        .complains("no probe can fire ticker:tock yet");
    let words = [
        "record",
        "--engine",
        "perf-tracefs",
        "-p",
        &pid,
        "-e",
        &tick,
        "--ring",
        "1s",
        "--trigger",
        "ticker:tock",
    ];
    lab.usdtrec(words)
        .complains("no recorded probe has this name");
}

/// A program that cannot be started is found at the start, and not when a trigger fires after days.
#[test]
fn a_command_that_cannot_be_started_is_refused() {
    let lab = Lab::privileged();
    let record = [
        "record",
        "-a",
        "-e",
        "ticker:tick",
        "--ring",
        "1h",
        "-o",
        "t.data",
    ];
    for (command, reason) in [
        (
            "/nonexistent/program --now",
            "/nonexistent/program cannot be started: No such file",
        ),
        (
            "no-such-program-anywhere",
            "no-such-program-anywhere cannot be started",
        ),
        (
            "/etc/passwd",
            "/etc/passwd cannot be started: Permission denied",
        ),
    ] {
        lab.usdtrec([&record[..], &["--trigger-cmd", command]].concat())
            .exits(2)
            .complains(reason);
    }
    assert!(files(lab.path(), "t.data").is_empty());
}

/// A window that is full holds less than its time, which is said by the recorder and of the file.
#[test]
fn a_window_that_its_size_has_cut_says_so() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    let options = ["-a", "-e", &event, "-o", "t.data", "-z0", "--ring", "1h,1M"];
    let recorder = Recorder::start(&lab, options);
    let mut command = Command::new(&program);
    command.arg("100000");
    let mut hot = Process::spawn(command);
    hot.say("go");
    hot.line();
    let file = dump(&lab, &recorder);
    recorder
        .stop()
        .complains(" instead of 3600s) in ")
        .complains("1 file holds less than the 3600s of --ring, the shortest ");
    let path = file.to_str().expect("a path");
    let report = lab.usdtrec(["report", "-i", path]).success();
    let report = report.complains("the file holds the last ");
    let report = report.complains(" instead of 3600s: ");
    assert!(!report.stdout.contains("not known"), "{}", report.stdout);
}

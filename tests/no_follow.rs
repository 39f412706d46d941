//! Recorders that drop their capabilities when the probes are attached (`--no-follow`).

use std::fs;
use std::path::Path;

use crate::common::{
    Build, Lab, Perf, Process, Recorder, Ticker, byte_of, copy_program, need_tool, run, sites_of,
    test, wait_until,
};

/// What the recorder says of files that were mapped later.
const LATER: &str = ", mapped later: the recording follows none";

/// The sets of capabilities, as `/proc/PID/status` has them, without the bounding set.
const SETS: [&str; 4] = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];

/// Asserts that no thread of a process has a capability, or can get one.
#[track_caller]
fn has_none(pid: u32) {
    let bounding = bounding_of(pid);
    assert_eq!(bounding, [0], "the bounding set");
}

/// Asserts that no thread of a process has a capability, and that programs that it executes get none. Returns the bounding sets.
#[track_caller]
fn bounding_of(pid: u32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let (mut number, mut bounding) = (0, Vec::new());
    for thread in threads {
        let status = thread.expect("a thread").path().join("status");
        let Ok(status) = fs::read_to_string(status) else {
            continue;
        };
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in:\n{status}"))
                .trim()
        };
        for set in SETS {
            assert_eq!(line(set), "0000000000000000", "{set} {status}");
        }
        bounding.push(u64::from_str_radix(line("CapBnd:"), 16).expect("a set"));
        assert_eq!(line("NoNewPrivs:"), "1", "{status}");
        number += 1;
    }
    assert!(number > 1, "a recorder has threads");
    bounding.sort_unstable();
    bounding.dedup();
    bounding
}

/// The counters of the recorded hits of a process.
fn counters(lab: &Lab, trace: &str, pid: u32) -> Vec<i128> {
    let events = lab.events(trace);
    let own = events.iter().filter(|event| event.pid == pid);
    own.map(|event| event.integer(1)).collect()
}

/// Whether the program has the instruction of its file again.
fn is_as_before(target: &Ticker, pc: u64, before: u8) -> bool {
    byte_of(target.pid(), target.program(), pc) == before
}

/// Two at once, one of a process and one of all.
#[test]
fn nothing_that_appears_later_is_recorded_and_nothing_stays() {
    let lab = Lab::with_own_notes();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let sites = sites_of(&lab, target.program());
    let pc = sites.iter().find(|site| site.event == "sdt_ticker:tick");
    let pc = pc.expect("a site").pc;
    let before = byte_of(target.pid(), target.program(), pc);
    let start = |options: &[&str]| {
        let mut all = vec!["--no-follow", "-e", &event];
        all.extend(options);
        Recorder::start(&lab, all)
    };
    let pid = target.pid().to_string();
    let whole = start(&["-a", "-o", "all"]);
    let single = start(&["-i", "-p", &pid, "-o", "one"]);
    for recorder in [&whole, &single] {
        has_none(recorder.pid());
    }
    assert!(!is_as_before(&target, pc, before), "a breakpoint");
    target.hit("fire 200");
    // The same file: all its processes have the probes. Another file of its name has none.
    let mut again = Ticker::again(target.program());
    again.hit("fire 3");
    fs::create_dir(lab.file("later")).expect("a folder");
    copy_program(target.program(), lab.file("later/ticker"));
    let mut later = Ticker::again(&lab.file("later/ticker"));
    later.hit("fire 5");
    for recorder in [&whole, &single] {
        has_none(recorder.pid());
    }
    let (later, again) = (later.pid(), again.pid());
    let said = single.stop();
    assert!(!is_as_before(&target, pc, before), "that of the other one");
    said.complains("dropped all capabilities");
    whole
        .stop()
        .complains("; still root, without them")
        .complains(LATER)
        .complains("not checked for remaining breakpoints: ");
    wait_until("the program is as before", || {
        is_as_before(&target, pc, before)
    });
    assert_eq!(target.semaphores(), (0, 0));
    // The sites stay noted, until a recorder has looked that may.
    let has_notes = || {
        let files = fs::read_dir(lab.notes()).expect("notes").flatten();
        let mut names = files.map(|file| file.file_name());
        names.any(|name| name.to_string_lossy().ends_with(".sites"))
    };
    assert!(has_notes());
    let pid = target.pid().to_string();
    let next = [
        "record",
        "-o",
        "next",
        "--duration",
        "10ms",
        "-p",
        &pid,
        "-e",
        &event,
    ];
    wait_until("the notes are removed", || {
        lab.usdtrec(next).success();
        !has_notes()
    });
    let fired: Vec<i128> = (0..200).collect();
    assert_eq!(counters(&lab, "all", target.pid()), fired);
    assert_eq!(counters(&lab, "one", target.pid()), fired);
    assert_eq!(counters(&lab, "all", again), [0, 1, 2]);
    assert_eq!(lab.events("one").len(), 200);
    assert_eq!(counters(&lab, "all", later), []);
    let report = lab.usdtrec(["report", "-i", "all"]).success();
    let whole = report.stdout + &report.stderr;
    assert!(whole.contains(LATER), "{whole}");
}

/// The bounding set stays without CAP_SETPCAP: as a service that may not change it.
#[test]
fn a_bounding_set_that_may_not_be_changed_stays() {
    const SETPCAP: u64 = 1 << 8;
    let lab = Lab::with_own_notes();
    need_tool("setpriv");
    let mut target = Ticker::start(&lab);
    let command = lab.command(["record", "--no-follow", "-a", "-o", "t"]);
    let program = command.get_program().to_owned();
    let mut limited = lab.at_home(Path::new("setpriv"), ["--bounding-set", "-setpcap"]);
    limited.arg(program).args(command.get_args());
    limited.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    limited.args(["-e", &target.event("tick")]);
    let mut recorder = Process::spawn(limited);
    recorder.until_error_line("[ usdtrec record:");
    let bounding = bounding_of(recorder.pid());
    assert!(bounding.len() == 1 && bounding[0] != 0 && bounding[0] & SETPCAP == 0);
    target.hit("fire 4");
    recorder.signal("INT");
    recorder.finish().success();
    assert_eq!(counters(&lab, "t", target.pid()), [0, 1, 2, 3]);
}

/// Files begin with the processes and their mappings, which the recorder cannot read any more.
#[test]
fn files_are_switched_without_capabilities() {
    let lab = Lab::with_own_notes();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let options = ["--no-follow", "-a", "-e", &event, "-o", "t"];
    let recorder = Recorder::start(&lab, options.iter().chain(&["--switch-output"]));
    target.hit("fire 2");
    recorder.signal("USR2");
    wait_until("the next file", || lab.file("t.2").exists());
    target.hit("fire 4");
    has_none(recorder.pid());
    recorder.stop();
    let perf = Perf::new(&lab);
    for (file, hits) in [("t.1", 2), ("t.2", 4)] {
        let events = lab.events(file);
        assert_eq!(events.len(), hits, "{file}");
        assert!(events.iter().all(|event| event.comm == "ticker"), "{file}");
        let mapped = perf.run(["script", "--show-mmap-events", "-i", file]);
        let mapped = mapped.success().stdout;
        let is_mapped = mapped.contains("PERF_RECORD_MMAP") && mapped.contains("libc.so");
        assert!(is_mapped, "{file}: {mapped}");
    }
}

/// A window is written at a signal and for a request.
#[test]
fn windows_are_written_without_capabilities() {
    let lab = Lab::with_own_notes();
    let mut target = Ticker::start(&lab);
    let pid = target.pid().to_string();
    let event = target.event("tick");
    let options = [
        "--no-follow",
        "-i",
        "-p",
        &pid,
        "-e",
        &event,
        "-o",
        "w",
        "--ring",
        "60s",
    ];
    let recorder = Recorder::start(&lab, options);
    target.hit("fire 7");
    let dumped = lab.usdtrec(["dump", "-p", &recorder.pid().to_string()]);
    let dumped = dumped.success().stdout;
    has_none(recorder.pid());
    recorder.stop();
    assert_eq!(lab.events(dumped.trim()).len(), 7);
}

/// Aggregated hits are read from maps, and a trace in a pipe.
#[test]
fn all_verbs_record_without_capabilities() {
    let lab = Lab::with_own_notes();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_ticker:tick@{program}");
    for (verb, shown) in [("stat", " 9"), ("trace", "tick"), ("top", "tick")] {
        let options = [verb, "--no-follow", "-i", "-e", &event, "--", program, "9"];
        let said = lab.usdtrec(options).success();
        assert!(said.stdout.contains(shown), "{verb}: {}", said.stdout);
        said.complains("dropped all capabilities");
    }
}

#[test]
fn what_needs_capabilities_to_the_end_is_refused() {
    let lab = Lab::new();
    for (options, reason) in [
        (
            &["-p", "1"][..],
            "--no-follow with -p or a command needs -i",
        ),
        (&["-p", "1", "-i", "--no-gap"], "cannot be used with"),
        (
            &["-a", "--no-wait"],
            "--no-wait has no effect: --no-follow waits for no file",
        ),
        (
            &["-a", "--thread-context"],
            "--thread-context cannot be used with --no-follow",
        ),
    ] {
        let command = ["record", "--no-follow", "-e", "ticker:tick"];
        lab.usdtrec(command.iter().chain(options))
            .exits(2)
            .complains(reason);
    }
}

/// It would wait for a file.
#[test]
fn a_pattern_that_selects_nothing_fails() {
    let lab = Lab::privileged();
    lab.usdtrec(["record", "--no-follow", "-a", "-e", "nobody_has_this:probe"])
        .exits(1)
        .complains("nobody_has_this");
    assert!(!Path::new(&lab.file("trace.data")).exists());
}

/// Root without capabilities may not make files in folders of others.
#[test]
fn a_folder_of_another_user_is_refused() {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let folder = lab.file("theirs");
    fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::chown(&folder, Some(1234), Some(1234)).expect("chown");
    let output = folder.join("trace");
    let mut command = lab.command(["record", "--no-follow", "-a", "--switch-output"]);
    command
        .args(["-e", &target.event("tick"), "-o"])
        .arg(output);
    run(command)
        .exits(1)
        .complains("without capabilities user 0 may not use this folder");
    let files = fs::read_dir(&folder).expect("a folder");
    assert_eq!(files.count(), 0);
}

//! What files and processes are called on the command line and in traces.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::common::{Build, Lab, Recorder, Ticker, copy_program, path_text, test};

/// A path that is no UTF-8 is recorded, and so is the file beside it.
#[test]
fn a_path_of_any_bytes() {
    let lab = Lab::privileged();
    let mut plain = Ticker::start(&lab);
    let odd = lab.path().join(OsStr::from_bytes(b"a\xffb"));
    copy_program(plain.program(), &odd);
    let mut odd = Ticker::again(&odd);
    for pids in [
        odd.pid().to_string(),
        format!("{},{}", odd.pid(), plain.pid()),
    ] {
        let recorder = Recorder::start(&lab, ["-p", &pids, "-o", "trace", "-e", "ticker:tick"]);
        let mut hits = odd.hit("fire 3").len();
        if pids.contains(',') {
            hits += plain.hit("fire 2").len();
        }
        recorder.stop();
        assert_eq!(lab.events("trace").len(), hits, "{pids}");
        // Its mappings are in the trace, too.
        let script = lab.usdtrec(["script", "-i", "trace", "-F", "event,dso"]);
        let script = script.success().silent().stdout;
        assert!(script.contains(r"a\xffb"), "{script}");
    }
}

/// A comma in a path has a backslash before it in lists.
#[test]
fn a_comma_in_a_path() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let path = lab.file("a,b(c");
    copy_program(program, &path);
    let mut ticker = Ticker::again(&path);
    let escaped = path_text(&path).replace(',', r"\,");
    let events = format!("ticker:tick@{escaped},ticker:guarded@{escaped}");
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &events]);
    let hits = ticker.hit("fire 3").len() + ticker.tell("guarded 2").len();
    recorder.stop();
    assert_eq!(lab.events("trace").len(), hits);
    let event = format!("ticker:tick@{escaped},ticker:guarded@{escaped}");
    let script = lab.usdtrec(["script", "-i", "trace", "-e", &event]);
    assert_eq!(script.success().stdout.lines().count(), hits);
}

/// `-p $(pidof ticker)` with two of them, with and without quotes.
#[test]
fn two_processes_as_pidof_prints_them() {
    let lab = Lab::privileged();
    let mut one = Ticker::start(&lab);
    let mut other = Ticker::again(one.program());
    let (first, second) = (one.pid().to_string(), other.pid().to_string());
    let quoted = format!("{first} {second}");
    for pids in [&["-p", &quoted][..], &["-p", &first, &second]] {
        let rest = ["-o", "trace", "-e", "ticker:tick"];
        let recorder = Recorder::start(&lab, [pids, &rest].concat());
        let hits = one.hit("fire 3").len() + other.hit("fire 2").len();
        recorder.stop();
        assert_eq!(lab.events("trace").len(), hits, "{pids:?}");
        let listed = lab.usdtrec([&["list"], pids].concat()).success();
        assert!(listed.stdout.contains("sdt_ticker:tick"), "{pids:?}");
    }
}

/// Names without a path: programs of `PATH`, libraries where the dynamic linker looks.
#[test]
fn bare_names() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let library = Build {
        compiler: "gcc",
        options: &["-O2", "-shared", "-fPIC"],
    };
    library.make(&lab, "library.c", "libodd.so.1");
    fs::create_dir(lab.file("elsewhere")).expect("a directory");
    let from_elsewhere = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        let path = format!("{}:/usr/bin:/bin", path_text(lab.path()));
        command.current_dir(lab.file("elsewhere")).env("PATH", path);
        command.env("LD_LIBRARY_PATH", lab.path());
        crate::common::run(command)
    };
    let listed = from_elsewhere(&["list", "-v", "--file", "ticker"]).success();
    assert!(listed.stdout.contains(path_text(ticker.program())));
    let listed = from_elsewhere(&["list", "-v", "--file", "libodd.so.1"]).success();
    assert!(listed.stdout.contains(path_text(&lab.file("libodd.so.1"))));
    from_elsewhere(&["list", "--file", "libc.so.6"]).success();
    from_elsewhere(&["list", "--file", "libnone.so.6"])
        .exits(1)
        .complains("libnone.so.6");
    from_elsewhere(&["record", "-a", "-e", "ticker:tick@nothing-here"])
        .exits(1)
        .complains("nothing-here");
    let event = "ticker:tick@ticker";
    from_elsewhere(&["record", "-a", "--duration", "50ms", "-e", event]).success();
    // In the working directory, the file there is meant.
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", event]);
    let hits = ticker.hit("fire 3");
    recorder.stop();
    assert_eq!(lab.events("trace").len(), hits.len());
}

/// With `-p`, indexed files that the process does not map are neither planted nor complained about, unless it maps none.
#[test]
fn files_that_the_process_does_not_map() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let changed = Build::USUAL.make(&lab, "ticker.c", "changed");
    let other = Build::USUAL.make(&lab, "first.c", "first");
    for path in [&changed, &other] {
        lab.usdtrec(["buildid-cache", "--add", path_text(path)])
            .success();
    }
    fs::write(&changed, "no program any more").expect("a file");
    let pid = ticker.pid().to_string();
    let mut record = lab.command(["record", "-p", &pid, "-o", "trace"]);
    record.args(["-e", "ticker:*", "--duration", "50ms"]);
    let record = crate::common::run(record).success().complains("in 1 file;");
    assert!(!record.stderr.contains("changed"), "{}", record.stderr);
    // What it may load later, and what its children run.
    lab.usdtrec([
        "record",
        "-p",
        &pid,
        "-e",
        "shapes:first",
        "--duration",
        "50ms",
    ])
    .success()
    .complains("the traced processes map no file with a probe shapes:first");
    assert_eq!(ticker.hit("fire 1").len(), 1);
}

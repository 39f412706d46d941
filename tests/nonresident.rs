//! Memory that is not resident when a probe is hit: it is read where that ends by itself, and whoever can make a page fault last holds
//! up neither the recording nor another tracer.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder, need_tool, test};

/// Seconds after which a page is served that the recording does not wait for.
const LATE: &str = "25";

/// testdata/targets/absent.c, waiting for its line.
fn absent(lab: &Lab, program: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(lab.path());
    Process::spawn(command)
}

fn event(program: &Path) -> String {
    format!("absent:text(t=str(arg1))@{}", program.display())
}

/// The string that one process of this kind had, as `script` shows it and without its address; the trace is `trace`.
#[track_caller]
fn string_of(lab: &Lab, program: &Path, arguments: &[&str], options: &[&str]) -> String {
    let event = event(program);
    let mut all = vec!["-a", "-o", "trace", "-e", &event];
    all.extend(options);
    let recorder = Recorder::start(lab, all);
    let mut process = absent(lab, program, arguments);
    process.say("");
    while process.line().is_some_and(|line| !line.ends_with(" hit")) {}
    recorder.stop();
    process.signal("KILL");
    let shown = lab.usdtrec(["script", "-F", "args", "-i", "trace"]);
    let shown = shown.success().stdout;
    let value = shown.trim().split_once("t=").map(|(_, value)| value);
    let value = value.unwrap_or_else(|| panic!("no string in {shown:?}"));
    match value.split_once(" 0x") {
        Some((reason, _)) => format!("{reason}>"),
        None => value.to_owned(),
    }
}

fn build(lab: &Lab) -> PathBuf {
    Build::USUAL.make(lab, "absent.c", "absent")
}

/// A page that somebody serves late, or the very thread that hits, or a file system's server: the hit is recorded without its string,
/// hits of another program are all there, and the recording ends before the page is served.
#[test]
fn no_process_waits_for_a_page_that_is_served_late() {
    let lab = Lab::privileged();
    let program = build(&lab);
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let both = format!("{},hot:req@{}", event(&program), hot.display());
    for (kind, processes) in [("late", "100"), ("self", "100"), ("fuse", "1")] {
        let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &both]);
        let mut stuck = absent(&lab, &program, &[kind, LATE, processes]);
        stuck.say("");
        let mut hits = 0;
        while hits < processes.parse::<usize>().expect("a number") {
            let line = stuck.line().expect("it goes on until it is served");
            assert!(!line.starts_with("served"), "{kind}: a hit waited");
            hits += usize::from(line.ends_with(" hit"));
        }
        let mut other = Command::new(&hot);
        other.arg("20000");
        let mut other = Process::spawn(other);
        other.say("");
        other.finish().success();
        recorder.stop();
        let told = stuck.line_within(std::time::Duration::ZERO);
        assert_eq!(told, None, "{kind}: the recording waited for the page");
        stuck.signal("KILL");
        let shown = lab.usdtrec(["script", "-F", "event,args", "-i", "trace"]);
        let shown = shown.success().stdout;
        let count = |part: &str| shown.lines().filter(|line| line.contains(part)).count();
        let lost = lab.usdtrec(["report", "--format", "json", "-i", "trace"]);
        let lost = lost.success().stdout;
        assert_eq!(count("sdt_hot:req:"), 20_000, "{kind}: {lost}");
        assert_eq!(count("t=<not resident 0x"), hits, "{kind}: {shown:.2000}");
        let json = lab.usdtrec(["script", "--format", "json", "-i", "trace"]);
        let json = json.success().stdout;
        let told = json.lines().filter(|line| {
            line.contains(r#""args":{"t":null}"#) && line.contains(r#""t":"not resident 0x"#)
        });
        assert_eq!(told.count(), hits, "{kind}");
    }
}

/// What ends by itself is waited for: memory that was never touched, and the page of a local file, of which nothing is in memory.
/// So it is for processes that share their memory with no other, and for those that may do anything here anyhow.
#[test]
fn local_memory_is_brought_in() {
    let lab = Lab::privileged();
    let program = build(&lab);
    let [text, missing] = ["\"served at last\"", "<not resident>"];
    for (arguments, expected) in [
        (["file", "0", "1", "1", "0"], text),
        (["anonymous", "0", "1", "1", "0"], "\"\""),
        (["file", "0", "1", "1", "65534"], text),
        (["file", "0", "1", "2", "0"], text),
        // Its other thread could put something else there meanwhile.
        (["file", "0", "1", "2", "65534"], missing),
        (["anonymous", "0", "1", "2", "65534"], missing),
    ] {
        let found = string_of(&lab, &program, &arguments, &[]);
        assert_eq!(found, expected, "{arguments:?}");
    }
}

/// `never` touches nothing, `always` waits for whoever serves a page.
#[test]
fn never_and_always() {
    let lab = Lab::privileged();
    let program = build(&lab);
    let never = ["--nonresident", "never"];
    let found = string_of(&lab, &program, &["file", "0"], &never);
    assert_eq!(found, "<not resident>");
    let always = ["--nonresident", "always"];
    let found = string_of(&lab, &program, &["late", "1"], &always);
    assert_eq!(found, "\"served at last\"");
    let event = event(&program);
    let refused = lab.usdtrec([
        "record",
        "--engine",
        "perf-tracefs",
        "--nonresident",
        "never",
        "-a",
        "-e",
        &event,
    ]);
    assert!(
        refused
            .stderr
            .contains("--nonresident needs the bpf engine"),
        "{}",
        refused.stderr
    );
}

/// A filter follows the same rule: what is not resident does not compare, and nothing waits for it.
#[test]
fn filters_do_not_wait() {
    let lab = Lab::privileged();
    let program = build(&lab);
    let path = program.display().to_string();
    let asked = format!("absent:text@{path}");
    for (kind, expected) in [("file", 1), ("late", 0)] {
        let filter = ["--filter", "arg1 == \"served at last\""];
        let mut all = vec!["-a", "-o", "trace", "-e", &asked];
        all.extend(filter);
        let recorder = Recorder::start(&lab, all);
        let mut process = absent(&lab, &program, &[kind, LATE]);
        process.say("");
        while process.line().is_some_and(|line| !line.ends_with(" hit")) {}
        recorder.stop();
        let told = process.line_within(std::time::Duration::ZERO);
        assert!(told.is_none() || kind == "file", "{told:?}");
        process.signal("KILL");
        assert_eq!(lab.events("trace").len(), expected, "{kind}");
    }
}

/// A file system on a loop device, of which another process, or no process, may serve the blocks.
#[test]
fn a_loop_device_is_not_waited_for() {
    let lab = Lab::privileged();
    need_tool("mkfs.ext4");
    need_tool("mount");
    let program = build(&lab);
    let event = event(&program);
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    // In a namespace of its own, so that the mount ends with the shell, and the loop device with the mount.
    let script = format!(
        "truncate -s 8M disk && mkfs.ext4 -q disk && mkdir mounted && mount -o loop disk mounted && cp /etc/passwd mounted/ && sync && \
         umount mounted && mount -o loop disk mounted && echo | {} mounted/passwd 0",
        program.display()
    );
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &script])
        .current_dir(lab.path());
    crate::common::run(command).success();
    recorder.stop();
    let shown = lab.usdtrec(["script", "-F", "args", "-i", "trace"]);
    let shown = shown.success().stdout;
    assert!(shown.contains("t=<not resident 0x"), "{shown}");
}

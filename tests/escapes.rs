//! Names of hostile files and programs in what the verbs print: nothing moves the cursor, hides, or passes for a message.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::common::{Build, Finished, Lab, run, test};

/// Clears the screen, sets the title, a control character of two bytes, turns text around, begins a line.
const EVIL: &str = "x\x1b[2J\x1b]0;owned\x07\u{9b}31m\u{202e}\x7f\r\nusdtrec: ok";

#[track_caller]
fn assert_harmless(ran: &Finished) {
    for text in [&ran.stdout, &ran.stderr] {
        for line in text.split('\n') {
            let harmful = |c: char| {
                c.is_control() && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{fffd}')
            };
            assert!(!line.contains(harmful), "{}: {line:?}", ran.what);
            assert!(!line.starts_with("usdtrec: ok"), "{}: {line:?}", ran.what);
        }
    }
}

/// A lab with the hostile program in a directory whose name is hostile, too.
fn program(lab: &Lab) -> PathBuf {
    let built = Build::USUAL.make(lab, "escapes.c", "escapes");
    let directory = lab.file(&format!("dir{EVIL}"));
    fs::create_dir(&directory).unwrap();
    let program = directory.join(EVIL);
    fs::rename(built, &program).unwrap();
    program
}

#[track_caller]
fn harmless(lab: &Lab, arguments: &[&str]) -> Finished {
    let ran = run(lab.command(arguments));
    assert!(
        ran.status.code().is_some_and(|code| code < 3),
        "{}: {}",
        ran.what,
        ran.stderr
    );
    assert_harmless(&ran);
    ran
}

/// All verbs that take files, without privileges.
#[test]
fn of_files_and_paths() {
    let lab = Lab::new();
    let program = program(&lab);
    let path = program.to_str().unwrap();
    let nowhere = format!("{path}.gone");
    let text = lab.file(&format!("{EVIL}.toml"));
    fs::write(&text, format!("[[probe]]\nname = \"{EVIL}\"\n[{EVIL}")).unwrap();
    let schema = text.to_str().unwrap();
    let added = harmless(&lab, &["buildid-cache", "--add", path]).success();
    assert!(added.stdout.contains("owned"), "{}", added.stdout);
    let directory = program.parent().unwrap().to_str().unwrap();
    for arguments in [
        &["list", "--file", path][..],
        &["list", "-v", "--file", path],
        &["list", "--format", "json", "--file", path],
        &["list", "--dir", directory],
        &["list", "-v"],
        &["list", "--file", &nowhere],
        &["list", "--file", schema],
        &["list", EVIL],
        &["buildid-cache", "--list"],
        &["buildid-cache", "--scan", directory, "-v"],
        &["buildid-cache", "--scan", &nowhere],
        &["buildid-cache", "--add", &nowhere],
        &["buildid-cache", "--add", schema],
        &["buildid-cache", "--update", path],
        &["buildid-cache", "--missing", path],
        &["buildid-cache", "--remove", path],
        &["buildid-cache", "--purge", &nowhere],
        &["schema", "check", schema, "--file", path],
        &["schema", "check", &nowhere],
        &["schema", "import", schema],
        &["schema", "show", EVIL],
        &["schema", "export", EVIL],
        &["script", "-i", path],
        &["script", "-i", &nowhere],
        &["report", "-i", path, "--schema", schema],
        &["diff", path, &nowhere],
        &["report", EVIL],
        &[EVIL],
        &["script", "-F", EVIL],
        &["script", "--filter", EVIL],
        &["script", "--format", EVIL],
        &["list", "--buildid-dir", path],
    ] {
        harmless(&lab, arguments);
    }
    fs::write(&program, "changed").unwrap();
    harmless(&lab, &["list"]);
    fs::remove_file(&program).unwrap();
    harmless(&lab, &["list"]);
}

/// A name that is no UTF-8.
#[test]
fn of_paths_that_are_no_text() {
    let lab = Lab::new();
    let program = program(&lab);
    let odd = lab.path().join(Path::new(std::ffi::OsStr::from_bytes(
        b"o\xff\xfe\x1b[31m\n",
    )));
    fs::rename(program, &odd).unwrap();
    for arguments in [&["list", "-v", "--file"][..], &["buildid-cache", "--add"]] {
        let mut command = lab.command(arguments);
        command.arg(&odd);
        let ran = run(command).success();
        assert_harmless(&ran);
        assert!(
            ran.stdout.contains(r"o\xff\xfe\x1b[31m\n"),
            "{}",
            ran.stdout
        );
    }
}

/// Recording: what is planted, what is refused, what is shown.
#[test]
fn of_what_is_recorded() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let path = program.to_str().unwrap();
    harmless(&lab, &["buildid-cache", "--add", path]).success();
    for engine in ["bpf", "perf-pmu", "perf-tracefs"] {
        let record = [
            "record", "-v", "--engine", engine, "-e", "ev*:*", "-o", "trace", "--", path,
        ];
        let ran = harmless(&lab, &record);
        // tracefs cannot have every path; then it says so.
        assert!(ran.stderr.contains("owned"), "{}", ran.stderr);
        if ran.status.success() {
            for arguments in [
                &["script", "-i", "trace", "-F", "+ip,+sym,+dso"][..],
                &["script", "-i", "trace", "--format", "json"],
                &["script", "-i", "trace", "--format", "csv"],
                &["script", "-i", "trace", "--format", "{comm} {event} {args}"],
                &["report", "-i", "trace"],
                &["report", "-i", "trace", "--sort", "comm,event,dso"],
                &["report", "-i", "trace", "--format", "csv"],
                &["diff", "trace", "trace"],
                &["buildid-cache", "--missing", "trace"],
                &["schema", "export", "-i", "trace"],
            ] {
                harmless(&lab, arguments);
            }
        }
    }
    let trace = ["trace", "-v", "--strings", "all", "-e", "ev*:*", "--", path];
    let traced = harmless(&lab, &trace).success();
    assert!(traced.stdout.contains(r"ev\x1b[31ml"), "{}", traced.stdout);
    let top = ["top", "-e", "ev*:*", "-d", "200ms", "--", path];
    harmless(&lab, &top).success();
    harmless(&lab, &["record", "--no-wait", "-e", "ev*:no*", "-a"]).exits(1);
    harmless(
        &lab,
        &[
            "record",
            "-o",
            &format!("/{EVIL}/x"),
            "-e",
            "ev*:*",
            "--",
            path,
        ],
    )
    .exits(1);
    harmless(&lab, &["record", "-e", &format!("*:*@{path}.gone"), "-a"]).exits(1);
    harmless(
        &lab,
        &["record", "-e", "ev*:*", "--", &format!("{path}.gone")],
    );
}

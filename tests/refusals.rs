//! What cannot be done is refused with what was expected, what was found, and what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{
    Build, Lab, Perf, Process, Ticker, copy_program, need_tool, path_text, run, sites_of, test,
    write_program,
};

#[test]
fn unknown_probe_names_the_closest() {
    let lab = Lab::privileged();
    let node = Build::USUAL.make(&lab, "node.c", "node");
    lab.usdtrec(["buildid-cache", "--add", path_text(&node)])
        .success();
    lab.usdtrec(["record", "-e", "sdt_node:gc__stat", "-a"])
        .exits(1)
        .complains("sdt_node:gc__stat")
        .complains("gc__start")
        .complains("buildid-cache --add");
    assert!(
        !lab.file("usdtrec.data").exists(),
        "no trace of a recording that did not begin"
    );
}

#[test]
fn file_without_probes() {
    let lab = Lab::privileged();
    fs::write(lab.file("page.html"), "<html>").expect("a file");
    let page = lab.file("page.html");
    lab.usdtrec(["record", "-e", &format!("x:y@{}", path_text(&page)), "-a"])
        .exits(1)
        .complains(path_text(&page));
    lab.usdtrec(["record", "-e", "x:y@/nowhere/prog", "-a"])
        .exits(1)
        .complains("/nowhere/prog");
}

/// A script is executed by its interpreter: wherever a program is named, the same is said.
#[test]
fn scripts_are_no_programs() {
    let lab = Lab::privileged();
    let script = lab.file("script");
    fs::write(&script, "#!/bin/sh\nexit 0\n").expect("a file");
    let path = path_text(&script);
    let event = format!("x:y@{path}");
    for words in [
        &["record", "-a", "-e", &event][..],
        &["record", "-a", "-e", "x:y", "--exe", path],
        &["list", "--file", path],
        &["list", &event],
    ] {
        let refused = lab.usdtrec(words);
        assert!(!refused.status.success(), "{words:?}");
        refused
            .complains(path)
            .complains("a script, which its interpreter executes");
    }
}

/// `list` reads the file of a pattern, as `record` does.
#[test]
fn a_path_of_a_pattern_is_read_by_list_too() {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let link = lab.file("link");
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    for path in [program, link] {
        let event = format!("sdt_shapes:*@{}", path_text(&path));
        let listed = lab.usdtrec(["list", &event]).success().stdout;
        assert!(listed.contains("sdt_shapes:first"), "{listed}");
    }
}

/// A program that was built anew since it was indexed is not recorded by its old addresses.
#[test]
fn changed_binary() {
    let lab = Lab::privileged();
    let usual = Build {
        options: &["-O2", "-DPROVIDER=changed_binary"],
        ..Build::USUAL
    };
    let program = usual.make(&lab, "early.c", "program");
    lab.usdtrec(["buildid-cache", "--add", path_text(&program)])
        .success();
    let changed = Build {
        compiler: "gcc",
        options: &["-O0", "-DPROVIDER=changed_binary"],
    };
    changed.make(&lab, "early.c", "program");
    // Where others are waited for, that is no end.
    lab.usdtrec([
        "record",
        "-e",
        "sdt_changed_binary:early",
        "-a",
        "--no-wait",
    ])
    .exits(1)
    .complains("sdt_changed_binary:early")
    .complains(path_text(&program))
    .complains("build-id")
    .complains("--update");
    lab.usdtrec(["buildid-cache", "--update", path_text(&program)])
        .success();
    lab.usdtrec([
        "record",
        "-e",
        "sdt_changed_binary:early",
        "--",
        path_text(&program),
    ])
    .success();
    assert_eq!(lab.events("usdtrec.data").len(), 1);
}

/// A site that holds no nop: planting a breakpoint there could break the program.
#[test]
fn site_without_nop() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let site = usize::try_from(sites_of(&lab, &program)[0].pc).expect("a small address");
    let mut bytes = fs::read(&program).expect("our program");
    assert_eq!(
        bytes[site], 0x90,
        "in this file, addresses of code are offsets"
    );
    bytes[site] = 0xc3;
    let patched = lab.file("patched");
    write_program(&patched, &bytes);
    let event = format!("sdt_shapes:first@{}", path_text(&patched));
    lab.usdtrec(["record", "-e", &event, "--", path_text(&patched)])
        .exits(1)
        .complains("sdt_shapes:first")
        .complains(path_text(&patched))
        .complains("nop");
}

/// A program for arm64, or for a machine that nobody knows, is planned by no engine here, not even with --force: their probes would never be hit.
#[test]
fn program_of_another_machine() {
    const MACHINE: usize = 18;
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let mut bytes = fs::read(&program).expect("our program");
    assert_eq!(bytes[MACHINE..MACHINE + 2], [62, 0], "EM_X86_64");
    for machine in [[183, 0], [0x34, 0x12]] {
        bytes[MACHINE..MACHINE + 2].copy_from_slice(&machine);
        let foreign = lab.file("foreign");
        fs::write(&foreign, &bytes).expect("a file");
        let event = format!("sdt_shapes:first@{}", path_text(&foreign));
        for engine in ["auto", "bpf", "bpf-perf", "perf", "perf-pmu"] {
            let options = ["--engine", engine, "--force", "--duration", "10ms"];
            lab.usdtrec([&["record", "-a", "-e", &event][..], &options].concat())
                .exits(1)
                .complains("sdt_shapes:first")
                .complains("attaches no probes to programs of that architecture");
        }
    }
}

#[test]
fn wrong_usage() {
    let lab = Lab::new();
    lab.usdtrec(["record"]).exits(2).complains("--event");
    lab.usdtrec(["record", "-e", "x:y", "--nonsense"])
        .exits(2)
        .complains("--nonsense");
    lab.usdtrec(["nonsense"]).exits(2).complains("nonsense");
}

#[test]
fn trace_that_is_none() {
    let lab = Lab::new();
    fs::write(lab.file("text"), "not a trace\n".repeat(100)).expect("a file");
    fs::write(lab.file("empty"), "").expect("a file");
    for verb in ["script", "report"] {
        lab.usdtrec([verb, "-i", "text"]).exits(1).complains("text");
        lab.usdtrec([verb, "-i", "empty"])
            .exits(1)
            .complains("empty");
        lab.usdtrec([verb, "-i", "nowhere"])
            .exits(1)
            .complains("nowhere");
        lab.usdtrec([verb]).exits(1).complains("usdtrec.data");
    }
}

#[test]
fn command_that_is_none() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let event = format!("sdt_shapes:first@{}", path_text(&program));
    lab.usdtrec(["record", "-e", &event, "--", "/nowhere/command"])
        .exits(1)
        .complains("/nowhere/command");
}

/// A place where a user without rights may run our binary: the lab opened, the binary copied into it.
fn open_to_all(lab: &Lab) -> PathBuf {
    let binary = lab.file("usdtrec");
    copy_program(env!("CARGO_BIN_EXE_usdtrec"), &binary);
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o777)).expect("our directory");
    binary
}

/// Without privileges: what is missing, and the way to get it. Reading needs none.
#[test]
fn without_privileges() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let event = format!("sdt_shapes:first@{}", path_text(&program));
    lab.usdtrec([
        "record",
        "-o",
        "trace",
        "-e",
        &event,
        "--",
        path_text(&program),
    ])
    .success();
    fs::set_permissions(lab.file("trace"), fs::Permissions::from_mode(0o644)).expect("our file");
    need_tool("setpriv");
    let binary = open_to_all(&lab);
    let as_nobody = |arguments: &[&str]| {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = lab.at_home(Path::new("setpriv"), nobody);
        command.arg(&binary).args(arguments);
        run(command)
    };
    as_nobody(&["record", "-e", &event, "-a"])
        .exits(1)
        .complains("CAP_PERFMON")
        .complains("root")
        .complains("sudo");
    let script = as_nobody(&["script", "-i", "trace"]).success();
    assert_eq!(script.stdout.lines().count(), 2);
    as_nobody(&["report", "-i", "trace"]).success();
    // The cache of the lab is root's.
    let own = |arguments: &[&str]| as_nobody(&[&["--buildid-dir", "own"], arguments].concat());
    own(&["buildid-cache", "--add", path_text(&program)]).success();
    let list = own(&["list", "sdt_shapes:*"]).success();
    assert!(list.stdout.contains("sdt_shapes:first"), "{}", list.stdout);
}

/// Without room for what must be undone after a kill, or on a file system that is read-only: that is said, and nothing is left of it.
#[test]
fn notes_that_cannot_be_written_are_said() {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let event = target.event("tick");
    for (end, error) in [
        ("head -c 4096 /dev/zero >/run/full", "No space left"),
        ("mount -o remount,ro /run", "Read-only file system"),
    ] {
        let script = format!(
            "mount -t tmpfs -o size=4k,mode=755 none /run && mkdir -m 700 /run/usdtrec && {end} && {{ \"$@\"; \
             status=$?; ls -A /run/usdtrec; exit $status; }}"
        );
        let shell = ["--mount", "sh", "-c", &script, "sh"];
        let mut record = lab.at_home(Path::new("unshare"), shell);
        record.arg(env!("CARGO_BIN_EXE_usdtrec"));
        record.args(["record", "-a", "-o", "t.data", "--duration", "200ms", "-e"]);
        record.arg(&event);
        let ended = run(record).success().complains(error);
        let ended = ended.complains("doctor --heal does not remove");
        assert_eq!(ended.stdout, "", "nothing is left: {}", ended.stdout);
    }
}

/// A full disk ends the recording with a message; what was written before is a whole trace.
#[test]
fn full_disk() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let mut target = Ticker::start(&lab);
    fs::create_dir(lab.file("small")).expect("a directory");
    // The small disk is seen by the recorder only, so that it vanishes with it.
    let script = "mount -t tmpfs -o size=4m none small && { usdtrec=$1; shift; \"$usdtrec\" record \"$@\"; \
                  status=$?; cp small/trace saved; exit $status; }";
    let events = format!(
        "sdt_hot:req@{},{}",
        path_text(&program),
        target.event("tick")
    );
    let shell = [
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_usdtrec"),
    ];
    let mut record = lab.at_home(Path::new("unshare"), shell);
    record.args(["-z0", "-a", "-o", "small/trace", "-e", &events]);
    let mut record = Process::spawn(record);
    record.until_error_line("[ usdtrec record:");
    let mut hot = Command::new(&program);
    hot.arg("300000");
    let mut hot = Process::spawn(hot);
    hot.say("go");
    hot.finish().success();
    let record = record
        .finish()
        .exits(1)
        .complains("small/trace")
        .complains("No space left");
    assert_eq!(target.semaphores().0, 0);
    let events = lab.events("saved").len();
    assert!(events > 1000, "{events} events in four megabytes");
    let (missing, hits) = missing_hits(&record.stderr);
    assert_eq!(hits - missing, events, "{}", record.stderr);
    assert!(missing > 0, "{}", record.stderr);
    let script = perf
        .run(["script", "-i", "saved", "-F", "event"])
        .success()
        .silent();
    assert_eq!(script.stdout.lines().count(), events);
    // The number of lost hits is unknown, which is reported.
    let report = lab.usdtrec(["report", "-i", "saved", "--format", "json"]);
    let report: serde_json::Value =
        serde_json::from_str(&report.success().stdout).expect("one object");
    assert_eq!(report["lost_exact"], false);
    assert_eq!(report["events"], events, "{report}");
    let report = lab.usdtrec(["report", "-i", "saved"]).success();
    assert!(report.stdout.contains("not exact"), "{}", report.stdout);
}

/// The numbers in `, but MISSING of HITS hits are not in the trace`.
#[track_caller]
fn missing_hits(message: &str) -> (usize, usize) {
    let numbers = message.split_once("complete, but ");
    let numbers = numbers.and_then(|(_, rest)| rest.split_once(" hits are not in the trace"));
    let numbers = numbers.and_then(|(numbers, _)| numbers.split_once(" of "));
    let (missing, hits) = numbers.unwrap_or_else(|| panic!("no numbers in {message:?}"));
    let number = |text: &str| text.parse().expect("a number");
    (number(missing), number(hits))
}

/// No time at all is no recording: it would be an empty file.
#[test]
fn duration_of_nothing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", path_text(&program));
    fs::write(lab.file("usdtrec.data"), "older").expect("a file");
    for verb in ["record", "trace", "top"] {
        for zero in ["0", "0s", "0ms", "0.0", "-1s"] {
            let duration = format!("--duration={zero}");
            lab.usdtrec([verb, "-a", &duration, "-e", &event])
                .exits(2)
                .complains("--duration: expected a time like 10s")
                .complains(&format!("found {zero:?}"));
        }
    }
    let older = fs::read(lab.file("usdtrec.data")).expect("a file");
    assert_eq!(older, b"older");
}

/// A file that may not grow any longer: any error of a write ends the recording like a full disk does.
#[test]
fn write_error() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let mut target = Ticker::start(&lab);
    // Blocks of 512 bytes.
    let script = "ulimit -f 6000 && exec \"$0\" record \"$@\"";
    let events = format!(
        "sdt_hot:req@{},{}",
        path_text(&program),
        target.event("tick")
    );
    let mut record = lab.at_home(
        Path::new("sh"),
        ["-c", script, env!("CARGO_BIN_EXE_usdtrec")],
    );
    record.args(["-z0", "-a", "-o", "trace", "-e", &events]);
    let mut record = Process::spawn(record);
    record.until_error_line("[ usdtrec record:");
    let mut hot = Command::new(&program);
    hot.arg("300000");
    let mut hot = Process::spawn(hot);
    hot.say("go");
    hot.finish().success();
    record
        .finish()
        .exits(1)
        .complains("trace")
        .complains("File too large");
    assert_eq!(target.semaphores().0, 0);
    let events = lab.events("trace").len();
    assert!(events > 1000, "{events} events in three megabytes");
    lab.usdtrec(["report", "-i", "trace"]).success().silent();
}

/// What cannot be written to at all is refused before anything is planted.
#[test]
fn no_place_for_a_trace() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    for (output, reason) in [
        ("/nowhere/trace", "No such file"),
        (".", "irectory"),
        ("/dev/full", "No space left"),
    ] {
        lab.usdtrec([
            "record",
            "-a",
            "-o",
            output,
            "-e",
            &event,
            "--duration",
            "1s",
        ])
        .exits(1)
        .complains(output)
        .complains(reason);
        assert_eq!(target.semaphores().0, 0, "{output}");
    }
}

/// The capabilities are for a group, as in the kernel's perf-security.rst: with them one may trace everything.
#[test]
fn advice_about_capabilities_names_a_group() {
    let lab = Lab::privileged();
    need_tool("setpriv");
    let program = env!("CARGO_BIN_EXE_usdtrec");
    let without = ["--bounding-set=-all", "--inh-caps=-all", program];
    let mut command = lab.at_home(Path::new("setpriv"), without);
    command.args(["record", "-a", "-e", "a:b"]);
    let refused = run(command)
        .exits(1)
        .complains(&format!("chgrp perf_users {program}"))
        .complains(&format!("chmod 0750 {program}"))
        .complains(&format!(
            "setcap cap_bpf,cap_perfmon,cap_ipc_lock+ep {program}"
        ));
    assert!(!refused.stderr.contains("dac"), "{}", refused.stderr);
}

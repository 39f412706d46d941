//! Files whose file systems do not answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ProgramPlace, check, program, run_until_planted};
use crate::common::{Build, Lab, Process, skip, test};

const USUAL: [ProgramPlace; 1] = [ProgramPlace {
    name: "usual",
    script: "exec $PROGRAM $HITS",
}];

/// A copy of a program, in a file system of its own.
struct Served<'a> {
    server: &'a Path,
    program: &'a Path,
    /// Whether it is read past the page cache; else the file system does not answer other processes.
    is_direct: bool,
}

/// Starts a process that maps it.
fn start(lab: &Lab, served: &Served<'_>) -> Process {
    let directory = lab.file("silent");
    let _ = fs::create_dir(&directory);
    let mut command = Command::new(served.server);
    command.args([directory.as_path(), served.program]);
    command.arg(if served.is_direct { "direct" } else { "silent" });
    let mut process = Process::spawn(command);
    assert_eq!(process.line().as_deref(), Some("mapped"));
    process
}

fn lab_with_fuse() -> Lab {
    let lab = Lab::privileged();
    if !Path::new("/dev/fuse").exists() {
        skip("the kernel has no FUSE");
    }
    lab
}

/// While the kernel attaches it would read such a file, and each process of the host that forks would wait for that.
#[test]
fn files_past_the_page_cache_are_refused_unless_forced() {
    const REFUSED: &str = "its file system reads past the page cache (FUSE with direct I/O)";
    const EVENT: &str = "appearing_direct:hit";
    let lab = lab_with_fuse();
    let program = program(&lab, "-DPROVIDER=appearing_direct");
    let server = Build::USUAL.make(&lab, "silent_file.c", "silent_file");
    let process = start(
        &lab,
        &Served {
            server: &server,
            program: &program,
            is_direct: true,
        },
    );
    let pid = process.pid().to_string();
    for engine in ["bpf-multi", "bpf-perf", "perf-tracefs", "perf-pmu"] {
        let record = |more: &[&str]| {
            let options = ["record", "-i", "-p", &pid, "--engine", engine, "-e", EVENT];
            let options = options.iter().chain(&["--duration", "100ms"]).chain(more);
            lab.usdtrec(options)
        };
        record(&[]).exits(1).complains(REFUSED).complains("--force");
        record(&["--force"]).success();
    }
    // As a file that appears, beside one that is recorded.
    let recorder = lab.at_home(
        Path::new(env!("CARGO_BIN_EXE_usdtrec")),
        ["record", "-a", "-o", "trace", "-e", EVENT],
    );
    let mut recorder = Process::spawn(recorder);
    recorder.until_error_line("[ usdtrec record: 0 probes");
    let own = run_until_planted(&lab, &program, &mut recorder, &USUAL, |_| {});
    recorder.signal("INT");
    recorder.finish().success().complains(REFUSED);
    check(&lab, &USUAL, &own);
    process.finish().success();
}

/// They delay neither the start of a recording, nor other files, nor the end.
#[test]
fn nothing_waits_for_them() {
    const WAIT_FOR_LINE: &str = "read line && exec \"$0\" \"$@\"";
    let lab = lab_with_fuse();
    let program = program(&lab, "-DPROVIDER=appearing_silent");
    let server = Build::USUAL.make(&lab, "silent_file.c", "silent_file");
    for is_there_first in [true, false] {
        let shell = ["-c", WAIT_FOR_LINE, env!("CARGO_BIN_EXE_usdtrec")];
        let mut recorder = lab.at_home(Path::new("sh"), shell);
        recorder.args(["record", "-a", "-o", "trace", "-e", "appearing_silent:hit"]);
        let mut recorder = Process::spawn(recorder);
        let served = Served {
            server: &server,
            program: &program,
            is_direct: false,
        };
        let before = is_there_first.then(|| start(&lab, &served));
        recorder.say("");
        recorder.until_error_line("[ usdtrec record: 0 probes");
        let process = before.unwrap_or_else(|| start(&lab, &served));
        let own = run_until_planted(&lab, &program, &mut recorder, &USUAL, |_| {});
        recorder.signal("INT");
        let said = recorder.finish().success();
        said.complains("whose file system did not answer in time");
        check(&lab, &USUAL, &own);
        process.finish().success();
    }
}

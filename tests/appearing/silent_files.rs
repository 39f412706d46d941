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

/// Starts a process that maps a copy of a program, whose file system does not answer another process.
fn silent(lab: &Lab, server: &Path, program: &Path, unanswered: &Process) -> Process {
    let directory = lab.file("silent");
    let _ = fs::create_dir(&directory);
    let mut command = Command::new(server);
    command.args([directory.as_path(), program]);
    command.arg(unanswered.pid().to_string());
    let mut process = Process::spawn(command);
    assert_eq!(process.line().as_deref(), Some("mapped"));
    process
}

/// They delay neither the start of a recording, nor other files, nor the end.
#[test]
fn nothing_waits_for_them() {
    const WAIT_FOR_LINE: &str = "read line && exec \"$0\" \"$@\"";
    let lab = Lab::privileged();
    if !Path::new("/dev/fuse").exists() {
        skip("the kernel has no FUSE");
    }
    let program = program(&lab, "-DPROVIDER=appearing_silent");
    let server = Build::USUAL.make(&lab, "silent_file.c", "silent_file");
    for is_there_first in [true, false] {
        let shell = ["-c", WAIT_FOR_LINE, env!("CARGO_BIN_EXE_usdtrec")];
        let mut recorder = lab.at_home(Path::new("sh"), shell);
        recorder.args(["record", "-a", "-o", "trace", "-e", "appearing_silent:hit"]);
        let mut recorder = Process::spawn(recorder);
        let before = is_there_first.then(|| silent(&lab, &server, &program, &recorder));
        recorder.say("");
        recorder.until_error_line("[ usdtrec record: 0 probes");
        let process = before.unwrap_or_else(|| silent(&lab, &server, &program, &recorder));
        let own = run_until_planted(&lab, &program, &mut recorder, &USUAL, |_| {});
        recorder.signal("INT");
        let said = recorder.finish().success();
        said.complains("not read: 1 file whose file system did not answer in time");
        check(&lab, &USUAL, &own);
        process.finish().success();
    }
}

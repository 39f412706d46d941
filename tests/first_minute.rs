//! The first commands of a new user: `usdtrec` alone, `sudo usdtrec record`, and `usdtrec report` without sudo.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use crate::common::{Build, Lab, Process, need_tool, run, test};

/// A user other than root, who has a folder.
const USER: u32 = 65534;

#[test]
fn without_a_verb_it_says_what_runs_and_what_to_type() {
    let lab = Lab::privileged();
    let build = Build {
        options: &["-DPROVIDER=first_minute"],
        ..Build::USUAL
    };
    let program = build.make(&lab, "running.c", "running");
    let mut process = Process::spawn(Command::new(&program));
    process.say("1");
    process.line().expect("it has begun");
    let said = lab.usdtrec([""; 0]).success().stdout;
    let path = program.display().to_string();
    assert!(said.contains(&path), "{said}");
    let command = said.lines().find(|line| line.contains(" record -a -e "));
    // Root needs no sudo. The file is the one that most processes run, of whatever test.
    assert!(
        command.is_some_and(|command| command.starts_with("  usdtrec record -a -e ")),
        "{said}"
    );
    assert!(said.contains("usdtrec --help"), "{said}");
}

/// Records one program as sudo runs it: the user who called sudo. What came of it: the owner and the mode of the trace.
fn recorded_by_sudo(lab: &Lab, owner: u32, caller: u32) -> (u32, u32) {
    let program = Build::USUAL.make(lab, "first.c", "first");
    let folder = lab.file("folder");
    fs::create_dir_all(&folder).expect("a folder");
    chown(&folder, Some(owner), Some(owner)).expect("its owner");
    let event = format!("sdt_shapes:first@{}", program.display());
    let mut record = lab.command(["record", "-q", "-o", "folder/trace", "-e", &event, "--"]);
    record.arg(&program);
    record.env("SUDO_UID", caller.to_string());
    record.env("SUDO_GID", caller.to_string());
    run(record).success();
    let trace = fs::metadata(folder.join("trace")).expect("the trace");
    assert_eq!(trace.gid(), trace.uid());
    (trace.uid(), trace.mode() & 0o7777)
}

#[test]
fn a_trace_is_of_the_user_who_called_sudo() {
    let lab = Lab::privileged();
    assert_eq!(recorded_by_sudo(&lab, USER, USER), (USER, 0o600));
    // Variables are not believed about somebody else's folder.
    for (owner, caller) in [(0, USER), (USER, 1000), (USER, 0)] {
        let lab = Lab::privileged();
        assert_eq!(recorded_by_sudo(&lab, owner, caller), (0, 0o600));
    }
}

#[test]
fn who_may_not_read_a_trace_is_told_what_to_do() {
    need_tool("setpriv");
    let lab = Lab::privileged();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    fs::copy(demo, lab.file("trace of root")).expect("a trace");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(lab.file("trace of root"), mode(0o600)).expect("its mode");
    fs::set_permissions(lab.path(), mode(0o755)).expect("the folder's");
    let user = USER.to_string();
    let mut report = lab.at_home(Path::new("setpriv"), ["--reuid", &user, "--clear-groups"]);
    report.args([
        env!("CARGO_BIN_EXE_usdtrec"),
        "report",
        "-i",
        "trace of root",
    ]);
    run(report)
        .exits(1)
        .complains("Permission denied")
        .complains("sudo chown \"$USER\" 'trace of root'");
}

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

/// The path of a program that was replaced does not lead to it: its process is named.
#[test]
fn a_program_that_was_replaced_is_recorded_by_its_process() {
    const SCRIPT: &str = "mkfifo in; exec 9<>in; ./running <&9 & \
        until readlink /proc/$!/exe | grep -q /running; do :; done; rm running; exec \"$0\"";
    need_tool("unshare");
    let lab = Lab::privileged();
    // Nothing else that runs there has probes.
    let build = Build {
        options: &["-O2", "-static", "-DPROVIDER=first_replaced"],
        ..Build::USUAL
    };
    build.make(&lab, "running.c", "running");
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let words = [&namespace[..], &["sh", "-c", SCRIPT, usdtrec]].concat();
    let said = run(lab.at_home(Path::new("unshare"), words)).success();
    let said = said.stdout;
    assert!(said.contains("/running (deleted)\n"), "{said}");
    let command = said.lines().find(|line| line.contains(" record -"));
    assert!(
        command.is_some_and(|command| {
            command.starts_with("  usdtrec record -p ") && !command.contains("deleted")
        }),
        "{said}"
    );
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

/// What root adds to the cache of its home under sudo, the user finds without it, in files of their own. Another cache is only what it is.
#[test]
fn what_sudo_adds_is_in_the_cache_of_the_user() {
    const SCRIPT: &str = "mount --bind passwd /etc/passwd && exec \"$@\"";
    need_tool("unshare");
    need_tool("setpriv");
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    fs::create_dir(lab.file("home")).expect("a home");
    chown(lab.file("home"), Some(USER), Some(USER)).expect("its owner");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(lab.path(), mode(0o755)).expect("the folder's mode");
    let home = lab.file("home").display().to_string();
    let entry = format!("user:x:{USER}:{USER}::{home}:/bin/sh\n");
    fs::write(lab.file("passwd"), entry).expect("a list of users");
    let add = |chosen: &[&str]| {
        let shell = ["--mount", "sh", "-c", SCRIPT, "sh"];
        let mut add = lab.at_home(Path::new("unshare"), shell);
        add.arg(env!("CARGO_BIN_EXE_usdtrec")).args(chosen);
        add.args(["buildid-cache", "--add"]).arg(&program);
        add.env_remove("PERF_BUILDID_DIR");
        add.env("SUDO_UID", USER.to_string());
        add.env("SUDO_GID", USER.to_string());
        run(add).success()
    };
    let listed = |options: &[&str], home: &Path| {
        let mut list = lab.at_home(Path::new("setpriv"), options);
        list.args([env!("CARGO_BIN_EXE_usdtrec"), "buildid-cache", "--list"]);
        list.env_remove("PERF_BUILDID_DIR").env("HOME", home);
        run(list).success().stdout
    };
    let user = USER.to_string();
    let as_user = ["--reuid", &user, "--regid", &user, "--clear-groups"];

    assert_eq!(add(&["--buildid-dir", "chosen"]).stderr, "");
    assert!(!lab.file("home/.debug").exists());
    let said = add(&[]);
    assert!(said.stderr.contains("who called sudo"), "{}", said.stderr);
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
    let of_root = listed(&["--"], lab.path());
    assert!(
        of_root.contains(&program.display().to_string()),
        "{of_root}"
    );
    assert_eq!(listed(&as_user, &lab.file("home")), of_root);
    let owner = fs::metadata(lab.file("home/.debug"))
        .expect("a cache")
        .uid();
    assert_eq!(owner, USER);

    // A home that the user cannot write fails nothing of root's.
    fs::remove_dir_all(lab.file("home/.debug")).expect("the user's cache");
    chown(lab.file("home"), Some(0), Some(0)).expect("root's home");
    let said = add(&[]);
    said.complains("Permission denied")
        .complains("not everything was added");
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

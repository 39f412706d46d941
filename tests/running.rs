//! What runs on this host is found without an index, in whatever mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, need_tool, test};

/// Builds the program. The option defines its provider, which no other test has: what others run is found, too.
fn program(lab: &Lab, provider: &'static [&'static str]) -> PathBuf {
    let build = Build {
        options: provider,
        ..Build::USUAL
    };
    build.make(lab, "running.c", "running")
}

/// Lets a program hit its probe.
fn hit(process: &mut Process, count: u32) {
    process.say(&count.to_string());
    process.line().expect("how often it did");
}

/// The recorder of all processes, which has begun, and what it printed before.
fn recorder(lab: &Lab, event: &str) -> (Process, Vec<String>) {
    let mut recorder = Process::spawn(lab.command(["record", "-a", "-e", event, "-o", "trace"]));
    let running = recorder.until_error_line("running now");
    let line = recorder.until_error_line("[ usdtrec record:");
    (recorder, vec![running, line])
}

/// Ends a recorder: the number of events in its trace.
fn events(lab: &Lab, recorder: Process) -> usize {
    recorder.signal("INT");
    recorder.finish().success();
    lab.events("trace").len()
}

#[test]
fn processes_are_recorded_without_an_index() {
    let lab = Lab::privileged();
    let program = program(&lab, &["-DPROVIDER=running_here"]);
    let mut before = Process::spawn(Command::new(&program));
    let mut other = Process::spawn(Command::new(&program));
    hit(&mut before, 1);
    hit(&mut other, 1);
    // Nothing is at its path any more.
    fs::remove_file(&program).expect("the program");
    let (recorder, said) = recorder(&lab, "running_here:hit");
    assert_eq!(said[0], "usdtrec: running now: 1 file, 2 processes");
    hit(&mut before, 3);
    hit(&mut other, 4);
    assert_eq!(events(&lab, recorder), 7);
    assert!(!lab.cache().exists(), "the cache was not asked for");
}

#[test]
fn list_shows_files_with_their_processes() {
    let lab = Lab::privileged();
    let program = program(&lab, &["-DPROVIDER=running_listed"]);
    let mut process = Process::spawn(Command::new(&program));
    hit(&mut process, 1);
    let json = lab.usdtrec(["list", "-a", "--format", "json", "running_listed:*"]);
    let json = json.success().stdout;
    let file: Value = serde_json::from_str(&json).expect("one line");
    assert_eq!(file["path"], program.to_str().expect("a path"));
    assert_eq!(
        file["events"],
        serde_json::json!(["sdt_running_listed:hit"])
    );
    assert_eq!(file["deleted"], false);
    assert_eq!(file["processes"][0]["pid"], process.pid());
    assert_eq!(file["processes"][0]["comm"], "running");
    assert_eq!(file["processes"].as_array().map(Vec::len), Some(1));
    let path = program.display().to_string();
    for by in [&[][..], &["--by", "container"]] {
        let arguments = ["list", "-a", "running_listed:*"].iter().chain(by);
        let text = lab.usdtrec(arguments).success().stdout;
        assert!(text.contains("PROBES PROCESSES  BUILD-ID"), "{text}");
        let row = text.lines().find(|line| line.ends_with(&path));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            row.split_whitespace().take(2).collect::<Vec<_>>(),
            ["1", "1"]
        );
    }
    let explained = lab.usdtrec(["list", "-a", "-v", "running_listed:*"]);
    assert!(
        explained
            .success()
            .stdout
            .contains("sdt_running_listed:hit")
    );
}

#[test]
fn what_does_not_run_is_said() {
    let lab = Lab::privileged();
    let no_wait = ["record", "-a", "--no-wait", "-e", "no_such_provider:hit"];
    lab.usdtrec(no_wait)
        .exits(1)
        .complains("no process runs a file with a probe no_such_provider:hit now, and no indexed binary has one")
        .complains("usdtrec list -a");
    lab.usdtrec(["list", "-a", "no_such_provider:*"])
        .exits(1)
        .complains("no process maps code with a probe no_such_provider:*");
}

/// Runs a program in a mount namespace of its own, below an overlay over its folder.
fn in_overlay(lab: &Lab, lower: &Path, name: &str) -> Process {
    let folder = |part: &str| {
        let folder = lab.file(&format!("{name}-{part}"));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    };
    let mut shell = Command::new("unshare");
    shell.args([
        "-m",
        "sh",
        "-c",
        r#"mount -t overlay overlay -o "lowerdir=$0,upperdir=$1,workdir=$2" "$3" && exec "$3/running""#,
    ]);
    shell.arg(lower);
    shell.args(["upper", "work", "merged"].map(folder));
    Process::spawn(shell)
}

/// The containers of an image run one inode, which each overlay shows as another.
#[test]
fn an_inode_below_two_overlays_is_planted_once() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let built = program(&lab, &["-DPROVIDER=running_overlay"]);
    let lower = lab.file("lower");
    fs::create_dir(&lower).expect("a folder");
    fs::rename(&built, lower.join("running")).expect("the program");
    let mut one = in_overlay(&lab, &lower, "one");
    let mut other = in_overlay(&lab, &lower, "other");
    hit(&mut one, 1);
    hit(&mut other, 1);
    let (recorder, said) = recorder(&lab, "running_overlay:hit");
    assert_eq!(said[0], "usdtrec: running now: 1 file, 2 processes");
    hit(&mut one, 3);
    hit(&mut other, 4);
    assert_eq!(events(&lab, recorder), 7);
}

//! Looking through directory trees and processes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{listed, other_program, paths, program};
use crate::common::{Build, Lab, Process, need_tool, path_text, run, test};

/// A tree with all that a scan must take once, pass over, or survive.
#[test]
fn a_tree_of_everything() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    let two = other_program(&lab, "two");
    need_tool("objcopy");
    let tree = lab.file("tree");
    fs::create_dir_all(tree.join("deep/er")).expect("directories");
    fs::rename(&one, tree.join("one")).expect("our file");
    fs::rename(&two, tree.join("deep/er/two")).expect("our file");
    let one = tree.join("one");
    let tool = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        run({
            command.args(arguments).current_dir(&tree);
            command
        })
        .success();
    };
    tool("objcopy", &["--only-keep-debug", "one", "deep/one.debug"]);
    tool(
        "gcc",
        &[
            "-x",
            "c",
            "-include",
            "sys/sdt.h",
            "-c",
            "-o",
            "object.o",
            "/dev/null",
        ],
    );
    tool("mkfifo", &["fifo"]);
    fs::write(tree.join("damaged"), b"\x7fELF\x02\x01\x01 and no more").expect("a file");
    fs::write(tree.join("text"), "text").expect("a file");
    symlink("..", tree.join("deep/loop")).expect("a link");
    symlink("one", tree.join("link")).expect("a link");
    // The cache is inside the tree: its copies are not programs of the tree.
    let cache = tree.join("cache");
    let dir = ["--buildid-dir", path_text(&cache)];
    for round in 0..2 {
        let scan = lab
            .usdtrec(
                dir.iter()
                    .chain(&["buildid-cache", "--scan", path_text(&tree)]),
            )
            .success()
            .complains("indexed 2 files")
            .complains("1 unreadable");
        assert_eq!(
            scan.stdout.lines().count(),
            2,
            "round {round}: {}",
            scan.stdout
        );
        assert!(scan.stdout.contains(path_text(&one)), "{}", scan.stdout);
    }
    lab.usdtrec(
        dir.iter()
            .chain(&["buildid-cache", "-v", "--scan", path_text(&tree)]),
    )
    .success()
    .complains("damaged: damaged ELF file");
    lab.usdtrec(dir.iter().chain(&[
        "buildid-cache",
        "--add",
        path_text(&tree.join("deep/one.debug")),
    ]))
    .exits(1)
    .complains("separate debug file");
    let list = lab
        .usdtrec(dir.iter().chain(&["list", "--format", "json"]))
        .success()
        .stdout;
    let listed_dir = lab
        .usdtrec(["list", "--format", "json", "--dir", path_text(&tree)])
        .success()
        .complains("damaged");
    assert_eq!(list, listed_dir.stdout, "--dir finds what --scan indexes");
    lab.usdtrec(["buildid-cache", "--scan", "/nowhere"])
        .exits(1)
        .complains("/nowhere");
}

/// All that a process maps: its program and its libraries, deleted files too.
#[test]
fn what_a_process_maps() {
    let lab = Lab::privileged();
    let build = |output: &str, source: &str, options: &'static [&'static str]| {
        let build = Build {
            compiler: "gcc",
            options,
        };
        build.make(&lab, source, output)
    };
    let program = build("ticker", "ticker.c", &["-O1"]);
    let process = Process::spawn(Command::new(&program));
    let pid = process.pid().to_string();
    let events = |found: &[serde_json::Value]| {
        found
            .iter()
            .filter(|p| p["event"] == "sdt_ticker:tick")
            .count()
    };
    let found = listed(&lab, &["-p", &pid]);
    assert_eq!(events(&found), 1);
    assert!(paths(&found).contains(&path_text(&program).to_owned()));
    assert_eq!(found[0].get("state"), None);
    fs::remove_file(&program).expect("our file");
    let found = listed(&lab, &["-p", &pid]);
    assert_eq!(events(&found), 1, "read although deleted");
    let path = format!("{} (deleted)", path_text(&program));
    assert!(paths(&found).contains(&path), "{found:?}");
    assert_eq!(found[0].get("state"), None, "it is mapped");
    drop(process);
    lab.usdtrec(["list", "-p", "4194304"])
        .exits(1)
        .complains("no process 4194304");
}

/// A process that sees other mounts than we do, as in a container: its path leads nowhere here, that below its root does.
#[test]
fn a_process_among_other_mounts() {
    let lab = Lab::privileged();
    need_tool("unshare");
    fs::create_dir_all(lab.file("files")).expect("a directory");
    fs::create_dir_all(lab.file("mounted")).expect("a directory");
    program(&lab, "files/ticker");
    let script = "mount --bind files mounted && exec mounted/ticker";
    let shell = ["--mount", "sh", "-c", script];
    let mut process = Process::spawn(lab.at_home(Path::new("unshare"), shell));
    process.say("semaphores");
    process.line().expect("an answer");
    let path = lab.file("mounted/ticker");
    assert!(!path.exists());
    let mut found = listed(&lab, &["-p", &process.pid().to_string()]);
    found.retain(|probe| probe["event"] == "sdt_ticker:tick");
    assert_eq!(
        paths(&found),
        [format!("/proc/{}/root{}", process.pid(), path_text(&path))],
        "a path that leads there from here"
    );
    assert_eq!(found[0].get("state"), None);
}

//! `buildid-cache` and `list`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, Ticker, need_tool, path_text, run, test};

/// The events that `list` shows.
#[track_caller]
fn listed(lab: &Lab, options: &[&str]) -> Vec<String> {
    let list = lab.usdtrec([&["list"], options].concat()).success().stdout;
    let lines = list.lines().filter(|line| line.contains("[SDT event]"));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn node(lab: &Lab) -> PathBuf {
    Build::USUAL.make(lab, "node.c", "node")
}

#[test]
fn add_list_remove() {
    let lab = Lab::new();
    let node = node(&lab);
    let first = Build::USUAL.make(&lab, "first.c", "first");
    let both = format!("{},{}", path_text(&node), path_text(&first));
    let added = lab
        .usdtrec(["buildid-cache", "--add", &both])
        .success()
        .stdout;
    assert!(
        added.contains(path_text(&node)) && added.contains(path_text(&first)),
        "{added}"
    );
    assert_eq!(listed(&lab, &[]).len(), 9);
    assert_eq!(
        listed(&lab, &["sdt_node:gc*"]),
        ["sdt_node:gc__done", "sdt_node:gc__start"]
    );
    assert_eq!(listed(&lab, &["node:gc-start"]), ["sdt_node:gc__start"]);
    let files = lab.usdtrec(["buildid-cache", "--list"]).success().stdout;
    assert_eq!(files.lines().count(), 2, "{files}");
    lab.usdtrec(["buildid-cache", "--remove", path_text(&first)])
        .success();
    assert_eq!(listed(&lab, &[]).len(), 8);
    lab.usdtrec(["buildid-cache", "--purge", path_text(&node)])
        .success();
    assert_eq!(listed(&lab, &[]), [""; 0]);
}

/// A file of overlayfs is copied into a cache beside it. A link would put another inode in its place, which processes that run do not map.
#[test]
fn files_of_overlayfs_keep_their_inode() {
    const SCRIPT: &str = "mount -t tmpfs none over
        mkdir over/lower over/upper over/work over/merged
        cp node over/lower/
        mount -t overlay -o lowerdir=over/lower,upperdir=over/upper,workdir=over/work none over/merged
        \"$1\" --buildid-dir over/merged/cache buildid-cache --add over/merged/node >added
        ls over/upper";
    let lab = Lab::privileged();
    need_tool("unshare");
    let node = node(&lab);
    assert_eq!(node, lab.file("node"));
    fs::create_dir(lab.file("over")).expect("a directory");
    let program = env!("CARGO_BIN_EXE_usdtrec");
    let shell = ["--mount", "sh", "-euc", SCRIPT, "sh", program];
    let changed = run(lab.at_home(Path::new("unshare"), shell))
        .success()
        .stdout;
    assert_eq!(changed, "cache\n");
}

/// A bare name is looked up in PATH, as the first page of the README does it.
#[test]
fn add_by_name() {
    let lab = Lab::new();
    let node = node(&lab);
    let mut add = lab.command(["buildid-cache", "--add", "node"]);
    add.env("PATH", node.parent().expect("a directory"));
    run(add).success();
    assert_eq!(listed(&lab, &[]).len(), 8);
    lab.usdtrec(["buildid-cache", "--add", "no-such-program"])
        .exits(1)
        .complains("no-such-program");
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    assert_eq!(listed(&lab, &[]), [""; 0]);
}

#[test]
fn update_after_a_build() {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    lab.usdtrec(["buildid-cache", "--add", path_text(&program)])
        .success();
    Build::USUAL.make(&lab, "hot.c", "program");
    lab.usdtrec(["buildid-cache", "--update", path_text(&program)])
        .success();
    assert_eq!(listed(&lab, &[]), ["sdt_hot:req"]);
}

/// `--scan` and `list --dir` walk a tree and find every file with probes, once.
#[test]
fn scan_a_tree() {
    let lab = Lab::new();
    let node = node(&lab);
    let first = Build::USUAL.make(&lab, "first.c", "first");
    let deep = lab.file("tree/a/b/c");
    fs::create_dir_all(&deep).expect("directories");
    fs::copy(&node, deep.join("node")).expect("a file");
    fs::copy(&first, lab.file("tree/first")).expect("a file");
    fs::write(lab.file("tree/a/text"), "no program").expect("a file");
    fs::write(
        lab.file("tree/a/half"),
        &fs::read(&node).expect("our file")[..5000],
    )
    .expect("a file");
    std::os::unix::fs::symlink("..", deep.join("loop")).expect("a link");
    let tree = lab.file("tree");
    assert_eq!(listed(&lab, &["--dir", path_text(&tree)]).len(), 9);
    assert_eq!(listed(&lab, &[]), [""; 0], "looking adds nothing");
    lab.usdtrec(["buildid-cache", "--scan", path_text(&tree)])
        .success();
    assert_eq!(listed(&lab, &[]).len(), 9);
}

/// `list -p` shows what a process maps; `-v` explains.
#[test]
fn list_a_process() {
    let lab = Lab::new();
    let ticker = Ticker::start(&lab);
    let pid = ticker.pid().to_string();
    assert_eq!(
        listed(&lab, &["-p", &pid]),
        ["sdt_ticker:guarded", "sdt_ticker:tick"]
    );
    let explained = lab
        .usdtrec(["list", "-v", "-p", &pid, "ticker:tick"])
        .success()
        .stdout;
    assert!(
        explained.contains("semaphore") && explained.contains("arg3"),
        "{explained}"
    );
    assert!(
        explained.contains(path_text(ticker.program())),
        "{explained}"
    );
}

/// The form of JSON that the issue tracker promised.
#[test]
fn list_json() {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let list = lab
        .usdtrec([
            "list",
            "--format",
            "json",
            "--file",
            path_text(&program),
            "ticker:tick",
        ])
        .success()
        .stdout;
    assert_eq!(list.lines().count(), 1, "{list}");
    let probe: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(probe["event"], "sdt_ticker:tick");
    assert_eq!(probe["provider"], "ticker");
    assert_eq!(probe["name"], "tick");
    assert_eq!(probe["path"], path_text(&program));
    assert_eq!(probe["arch"], "x86_64");
    assert_eq!(probe["build_id"].as_str().map(str::len), Some(40));
    let site = &probe["sites"][0];
    for key in ["pc", "base", "semaphore", "offset", "semaphore_offset"] {
        assert!(
            site[key]
                .as_str()
                .is_some_and(|text| text.starts_with("0x")),
            "{key} of {site}"
        );
    }
    let operands = site["operands"].as_array().expect("operands");
    assert_eq!(operands.len(), 3);
    assert_eq!(operands[0]["size"], 4);
    assert_eq!(operands[0]["signed"], true);
    assert_eq!(operands[2]["size"], 8);
}

/// Many at once leave a sound cache with everything in it.
#[test]
fn many_at_once() {
    let lab = Lab::new();
    let node = node(&lab);
    let first = Build::USUAL.make(&lab, "first.c", "first");
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let add = |file: &Path| -> Command { lab.command(["buildid-cache", "--add", path_text(file)]) };
    let all: Vec<Process> = [&node, &first, &hot]
        .iter()
        .cycle()
        .take(12)
        .map(|file| Process::spawn(add(file)))
        .collect();
    for process in all {
        process.finish().success();
    }
    assert_eq!(listed(&lab, &[]).len(), 10);
}

/// `--missing` names the files of a trace that the cache lacks.
#[test]
fn missing_files_of_a_trace() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "program");
    let event = format!("sdt_shapes:first@{}", path_text(&program));
    let other = Build::USUAL.make(&lab, "ticker.c", "other");
    let no_hit = format!("ticker:tick@{}", path_text(&other));
    lab.usdtrec([
        "record",
        "-o",
        "trace",
        "-e",
        &event,
        "-e",
        &no_hit,
        "--",
        path_text(&program),
    ])
    .success();
    lab.usdtrec(["buildid-cache", "--purge-all"]).success();
    let missing = lab
        .usdtrec(["buildid-cache", "--missing", "trace"])
        .success()
        .stdout;
    assert!(missing.contains(path_text(&program)), "{missing}");
    // As with perf, neither files without hits nor libraries that were only mapped.
    assert_eq!(missing.lines().count(), 1, "{missing}");
    lab.usdtrec(["buildid-cache", "--add", path_text(&program)])
        .success();
    let missing = lab
        .usdtrec(["buildid-cache", "--missing", "trace"])
        .success()
        .stdout;
    assert!(!missing.contains(path_text(&program)), "{missing}");
}

/// Build-ids of any length identify files; perf's records have the first 20 bytes, as perf reads them.
#[test]
fn build_ids_of_any_length() {
    const LONG: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                        202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
    let builds: [(&[&str], usize); 3] = [
        (&["-O2", "-Wl,--build-id=0x47"], 1),
        (
            &[
                "-O2",
                "-DPROVIDER=id_lengths",
                "-Wl,--build-id=0x000102030405060708090a0b0c0d0e0f1011121314",
            ],
            21,
        ),
        (
            &[
                "-O2",
                "-DPROVIDER=id_lengths",
                "-Wl,--build-id=0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
            ],
            64,
        ),
    ];
    for (options, bytes) in builds {
        let lab = Lab::privileged();
        let build = Build {
            compiler: "gcc",
            options,
        };
        let program = build.make(&lab, "pairs.c", "pairs");
        let program = program.to_str().expect("a path");
        let id = if bytes == 1 { "47" } else { &LONG[..2 * bytes] };
        let added = lab.usdtrec(["buildid-cache", "--add", program]).success();
        assert!(
            added.stdout.contains(&format!("(build-id {id})")),
            "{}",
            added.stdout
        );
        let list = lab.usdtrec(["buildid-cache", "--list"]).success().stdout;
        assert!(list.contains(&format!("{id} {program}")), "{list}");
    }
}

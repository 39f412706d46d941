//! What the verbs do and say.

use std::fs;

use super::{listed, other_program, paths, program};
use crate::common::{Build, Lab, path_text, run, test};

#[test]
fn add_says_what_it_added() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    let first = lab
        .usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success()
        .silent();
    let probes = listed(&lab, &[]);
    let sites: usize = probes
        .iter()
        .map(|probe| probe["sites"].as_array().expect("sites").len())
        .sum();
    let id = probes[0]["build_id"].as_str().expect("an id");
    let noun =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let line = format!(
        "{}: {} at {} (build-id {id}",
        path_text(&one),
        noun(probes.len(), "probe"),
        noun(sites, "site")
    );
    assert_eq!(first.stdout, format!("{line})\n"));
    let again = lab
        .usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    assert_eq!(again.stdout, format!("{line}, known already)\n"));
}

/// A bare name is looked up here, then in PATH; what cannot be added is named, and costs the others nothing.
#[test]
fn names_and_failures() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    fs::create_dir(lab.file("bin")).expect("a directory");
    fs::rename(&one, lab.file("bin/tool")).expect("our file");
    let mut command = lab.command([
        "buildid-cache",
        "--add",
        "tool,nowhere,/nowhere/at/all,text,bin",
    ]);
    command.env("PATH", lab.file("bin"));
    fs::write(lab.file("text"), "#!/bin/sh\n").expect("a file");
    let outcome = run(command)
        .exits(1)
        .complains("nowhere: not found in the working directory, in PATH or as a library")
        .complains("/nowhere/at/all: No such file")
        .complains("text: not an ELF file");
    assert!(outcome.stdout.contains("bin/tool: "), "{}", outcome.stdout);
    assert_eq!(outcome.stdout.lines().count(), 1);
    assert_eq!(
        paths(&listed(&lab, &[])),
        [path_text(&lab.file("bin/tool"))]
    );
}

/// perf's cache goes by build-id; what has none is still reached by path.
#[test]
fn without_build_id() {
    let lab = Lab::new();
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-Wl,--build-id=none"],
    };
    let program = build.make(&lab, "ticker.c", "anonymous");
    lab.usdtrec(["buildid-cache", "--add", path_text(&program)])
        .exits(1)
        .complains("no build-id")
        .complains(&format!("@{}", path_text(&program)));
    let found = listed(&lab, &["--file", path_text(&program)]);
    assert!(
        found
            .iter()
            .any(|probe| probe["event"] == "sdt_ticker:tick")
    );
    assert!(found[0]["build_id"].is_null());
}

/// One build-id at two paths: both are probed; the second takes over when the first is forgotten or gone.
#[test]
fn two_paths_of_one_build() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    let copy = lab.file("copy");
    fs::copy(&one, &copy).expect("a copy");
    let link = lab.file("hard-link");
    fs::hard_link(&one, &link).expect("a link");
    for file in [&one, &copy, &link] {
        lab.usdtrec(["buildid-cache", "--add", path_text(file)])
            .success();
    }
    // A hard link is the same file: a probe planted through one name is planted in both.
    assert_eq!(
        paths(&listed(&lab, &[])),
        [path_text(&copy), path_text(&one)]
    );
    fs::remove_file(&link).expect("our link");
    lab.usdtrec(["buildid-cache", "--purge", path_text(&one)])
        .success();
    assert_eq!(paths(&listed(&lab, &[])), [path_text(&copy)]);
    lab.usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    fs::remove_file(&copy).expect("our copy");
    lab.usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    assert_eq!(paths(&listed(&lab, &[])), [path_text(&one)]);
    lab.usdtrec(["buildid-cache", "--remove", path_text(&one)])
        .success();
    assert!(listed(&lab, &[]).is_empty());
    lab.usdtrec(["buildid-cache", "--remove", path_text(&one)])
        .exits(1)
        .complains("not in the cache");
}

/// A file that was overwritten in place changes its hard link in the cache as well. Its probes are then known by name.
#[test]
fn overwritten_in_place() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    let two = other_program(&lab, "two");
    lab.usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    let before = listed(&lab, &[]);
    fs::write(&one, fs::read(&two).expect("our file")).expect("the same inode");
    let list = lab
        .usdtrec(["list"])
        .success()
        .complains("changed since it was indexed");
    assert_eq!(list.stdout, "", "perf does not list it either");
    let now = listed(&lab, &["ticker:tick"]);
    assert_eq!(now.len(), 1);
    assert_eq!(now[0]["state"], "changed");
    assert_eq!(now[0]["sites"].as_array().map(Vec::len), Some(0));
    assert_eq!(now[0]["build_id"], before[0]["build_id"]);
    lab.usdtrec(["buildid-cache", "--update", path_text(&one)])
        .success();
    let after = listed(&lab, &["ticker:tick"]);
    assert_eq!(
        after.len(),
        1,
        "the earlier build is not listed beside the present one"
    );
    assert_eq!(after[0].get("state"), None);
    assert_ne!(after[0]["build_id"], before[0]["build_id"]);
}

/// A file that was removed is named by text, listed as gone by JSON, and forgotten by purge.
#[test]
fn removed_after_indexing() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    lab.usdtrec(["buildid-cache", "--add", path_text(&one)])
        .success();
    fs::remove_file(&one).expect("our file");
    lab.usdtrec(["list"])
        .success()
        .complains("gone since it was indexed")
        .complains("--purge");
    let found = listed(&lab, &["ticker:tick"]);
    assert_eq!(found[0]["state"], "gone");
    assert_ne!(
        found[0]["sites"].as_array().map(Vec::len),
        Some(0),
        "read from the cached file"
    );
    lab.usdtrec(["buildid-cache", "--purge", path_text(&one)])
        .success();
    lab.usdtrec(["list"])
        .success()
        .complains("no probes are indexed");
}

/// A cache on another file system holds copies.
#[test]
fn cache_on_another_file_system() {
    let lab = Lab::new();
    let one = program(&lab, "one");
    let cache = tempfile::Builder::new()
        .prefix("usdtrec-test-")
        .tempdir_in("/dev/shm")
        .expect("a directory in memory");
    let dir = ["--buildid-dir", path_text(cache.path())];
    lab.usdtrec(
        dir.iter()
            .chain(&["buildid-cache", "--add", path_text(&one)]),
    )
    .success();
    let list = lab
        .usdtrec(dir.iter().chain(&["list", "ticker:tick"]))
        .success();
    assert!(list.stdout.contains("sdt_ticker:tick"), "{}", list.stdout);
    fs::remove_file(&one).expect("our file");
    let json = lab
        .usdtrec(dir.iter().chain(&["list", "--format", "json"]))
        .success();
    assert!(json.stdout.contains("\"args\""), "{}", json.stdout);
}

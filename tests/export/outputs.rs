//! Where exports go: a file has its name only when it is complete.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::common::{Lab, need_parquet, need_tool, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

#[test]
fn a_file_is_replaced_when_the_new_one_is_complete() {
    let lab = Lab::new();
    fs::write(lab.file("out"), "older").expect("a file");
    let refused = lab.usdtrec([
        "export", "-i", DEMO, "--to", "otlp", "-o", "out", "--span", "nowhere",
    ]);
    refused.exits(1).complains("nowhere");
    assert_eq!(fs::read(lab.file("out")).expect("the file"), b"older");
    let export = ["export", "-i", DEMO, "--to", "otlp", "-o"];
    let to = |path: &'static str| lab.usdtrec([&export[..], &[path]].concat());
    to("out").success().silent();
    let written = fs::read_to_string(lab.file("out")).expect("the file");
    assert!(written.len() > 100_000, "{}", written.len());
    assert_eq!(to("-").success().stdout, written);
    // What it leads to stays.
    fs::write(lab.file("target"), "kept").expect("a file");
    symlink("target", lab.file("link")).expect("a link");
    to("link").success();
    assert_eq!(fs::read(lab.file("target")).expect("the file"), b"kept");
    to("/dev/null").success();
    to(".").exits(1).complains("directory");
    to("missing/out").exits(1).complains("missing/out");
    let files = fs::read_dir(lab.path()).expect("a directory");
    let left = files.filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().starts_with(".usdtrec")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let lab = Lab::new();
    let export = |input: &str| {
        let line = format!(
            "cat {DEMO} | {} export -i {input} --to otlp -o -",
            env!("CARGO_BIN_EXE_usdtrec")
        );
        run(lab.at_home(Path::new("sh"), ["-c", &line]))
            .success()
            .stdout
    };
    let piped = export("-");
    assert_eq!(piped, export(DEMO));
    assert!(piped.len() > 100_000);
}

/// The kernel kills an export that writes a larger file than it may, as kill -9 does: nothing of it runs any more.
#[test]
fn the_next_export_removes_what_a_killed_one_left() {
    need_parquet();
    need_tool("prlimit");
    let lab = Lab::new();
    let names = || {
        let files = fs::read_dir(lab.path()).expect("a directory");
        let names = files.map(|entry| entry.expect("an entry").file_name());
        let names: BTreeSet<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names
    };
    let export = [
        "--fsize=4096",
        "--core=0",
        env!("CARGO_BIN_EXE_usdtrec"),
        "export",
        "-i",
        DEMO,
        "--to",
        "parquet",
        "-o",
        "dataset",
    ];
    let killed = run(lab.at_home(Path::new("prlimit"), export));
    assert_eq!(killed.status.signal(), Some(libc::SIGXFSZ), "{killed:?}");
    let left = names();
    let is_left = |name: &String| name.starts_with(".usdtrec-export-");
    assert_eq!(left.iter().filter(|name| is_left(name)).count(), 1);
    assert!(!left.contains("dataset"));
    let again = ["export", "-i", DEMO, "--to", "parquet", "-o", "dataset"];
    lab.usdtrec(again).success().silent();
    assert!(!names().iter().any(is_left), "{:?}", names());
    assert!(names().contains("dataset"));
}

#[test]
fn an_export_without_anything_says_so() {
    let lab = Lab::new();
    let to = |format: &str, options: &[&str]| {
        let export = ["export", "-i", DEMO, "--to", format, "-o"];
        let output = format!("out.{format}");
        lab.usdtrec([&export[..], &[&output], options].concat())
            .success()
            .complains("the export is empty")
    };
    let nothing = ["--filter", "pid == 0"];
    for format in ["perfetto", "otlp", "otlp-proto", "perf"] {
        to(format, &nothing).complains("no event was selected");
    }
}

#[test]
fn formats_that_are_not_written_have_a_successor() {
    let lab = Lab::new();
    for (format, instead) in [
        ("chrome", "use --to perfetto,"),
        ("ctf", "perf data convert --to-ctf=DIR"),
        ("ctf2", "perf data convert --to-ctf=DIR"),
        ("firefox", "perf script -F +pid,+ip,+sym,+dso"),
        ("speedscope", "use --to folded,"),
    ] {
        let export = ["export", "-i", DEMO, "--to", format, "-o", "out"];
        let refused = lab.usdtrec(export).exits(2);
        refused
            .complains(&format!("there is no --to {format}: "))
            .complains(instead);
    }
}

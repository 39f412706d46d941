//! What the verbs that read print of the traces in `testdata/`: a digest for each command, so that a change of output is seen, and made on purpose.
//!
//! | to | command |
//! |---|---|
//! | write the digests again, after an intended change | `USDTREC_UPDATE=1 cargo test --features parquet --test end_to_end -- outputs::` |
//! | see the outputs themselves, a file for each command, for `diff -r` with those of another commit | the same with `USDTREC_OUTPUTS=DIR` |
//!
//! Parquet is not among them: its files are compared by their values, in `export::parquet`.

mod commands;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::common::{Lab, need_parquet, test};

/// The folder of what a command writes, which is empty before.
const WRITTEN: &str = "written";

/// A laboratory with the stored traces and other inputs, whose paths are the same everywhere.
fn lab() -> Lab {
    let lab = Lab::new();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for folder in ["traces", "debug", "bpftrace", "schemas"] {
        fs::create_dir(lab.file(folder)).expect("a folder");
        for entry in fs::read_dir(stored.join(folder)).expect("a folder") {
            let entry = entry.expect("a file");
            let copy = lab.file(folder).join(entry.file_name());
            fs::copy(entry.path(), copy).expect("a copy");
        }
    }
    fs::copy(stored.join("demo.data"), lab.file("demo.data")).expect("a copy");
    lab
}

/// The paths of all traces, in order.
fn traces(lab: &Lab) -> Vec<String> {
    let mut traces = vec!["demo.data".to_owned()];
    for entry in fs::read_dir(lab.file("traces")).expect("a folder") {
        let name = entry.expect("a file").file_name();
        let name = name.to_str().expect("a name");
        if name.ends_with(".data") {
            traces.push(format!("traces/{name}"));
        }
    }
    traces.sort();
    traces
}

/// All that a command prints and writes, and its exit status. `< FILE` at its end is its standard input.
fn output(lab: &Lab, line: &str) -> Vec<u8> {
    let written = lab.file(WRITTEN);
    fs::create_dir(&written).expect("a folder");
    let (words, input) = line.split_once(" < ").unwrap_or((line, "/dev/null"));
    let input = fs::File::open(lab.path().join(input)).expect("an input");
    let mut command: Command = lab.command(words.split(' '));
    command.env("TZ", "UTC").stdin(input);
    let ended = command.output().expect("the program runs");
    let mut output = ended.stdout;
    for file in files(&written) {
        output.extend(fs::read(&file).expect("a file"));
    }
    fs::remove_dir_all(&written).expect("a folder");
    output.extend(ended.stderr);
    output.extend(format!("{}\n", ended.status).bytes());
    without(output, lab.path())
}

/// Replaces the path of the laboratory, which is another one in each run. Binary output does not have it.
fn without(output: Vec<u8>, path: &Path) -> Vec<u8> {
    match String::from_utf8(output) {
        Ok(text) => text.replace(path.to_str().expect("a path"), "LAB").into(),
        Err(binary) => binary.into_bytes(),
    }
}

/// All files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// Compares the digests of commands with those in a file, or writes them.
fn compare(name: &str, lab: &Lab, commands: &[String]) {
    let shown = std::env::var_os("USDTREC_OUTPUTS").map(PathBuf::from);
    let mut digests = String::new();
    for command in commands {
        let output = output(lab, command);
        let digest = Sha256::digest(&output);
        for byte in &digest[..8] {
            digests += &format!("{byte:02x}");
        }
        digests += &format!(" {command}\n");
        if let Some(folder) = &shown {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join(command.replace('/', "-")), output).expect("a file");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/outputs/{name}.txt"));
    if std::env::var_os("USDTREC_UPDATE").is_some() {
        fs::write(&path, digests).expect("the digests");
        return;
    }
    let expected = fs::read_to_string(path).expect("digests");
    let differ: Vec<&str> = digests
        .lines()
        .filter(|line| !expected.lines().any(|expected| expected == *line))
        .collect();
    assert!(
        differ.is_empty() && digests.lines().count() == expected.lines().count(),
        "outputs are not those of tests/outputs/{name}.txt (tests/outputs/mod.rs says how to see and accept them):\n{}",
        differ.join("\n")
    );
}

fn owned(commands: &[&str]) -> Vec<String> {
    commands.iter().map(|&command| command.to_owned()).collect()
}

#[test]
fn of_every_trace() {
    let lab = lab();
    let commands: Vec<String> = traces(&lab)
        .iter()
        .flat_map(|trace| {
            let for_trace = |command: &&str| command.replace("TRACE", trace);
            commands::OF_EVERY_TRACE
                .iter()
                .map(for_trace)
                .collect::<Vec<_>>()
        })
        .collect();
    compare("every_trace", &lab, &commands);
}

#[test]
fn of_spans_groups_and_stacks() {
    compare("questions", &lab(), &owned(commands::QUESTIONS));
}

#[test]
fn of_probes_and_schemas() {
    need_parquet();
    compare("probes", &lab(), &owned(commands::PROBES));
}

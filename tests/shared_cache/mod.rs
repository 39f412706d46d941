//! The cache that we share with perf: side by side in it, and sound whatever happens.

mod fields;
mod perf;
mod scan;
mod sound;
mod trust;
mod verbs;

use std::path::PathBuf;

use crate::common::{Build, Lab};

/// A program with probes.
#[track_caller]
fn program(lab: &Lab, name: &str) -> PathBuf {
    Build::USUAL.make(lab, "ticker.c", name)
}

/// Another build of it.
#[track_caller]
fn other_program(lab: &Lab, name: &str) -> PathBuf {
    let build = Build {
        compiler: "gcc",
        options: &["-O0"],
    };
    build.make(lab, "ticker.c", name)
}

/// The lines of `list --format json`, one a probe and file.
#[track_caller]
fn listed(lab: &Lab, options: &[&str]) -> Vec<serde_json::Value> {
    let arguments = ["list", "--format", "json"].iter().chain(options);
    let list = lab.usdtrec(arguments).success();
    let lines = list.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The paths that a listing names, without repetition.
fn paths(listed: &[serde_json::Value]) -> Vec<String> {
    let mut paths: Vec<String> = listed
        .iter()
        .map(|probe| probe["path"].as_str().expect("a path").to_owned())
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

//! How the crates are built up: in no crate files import each other in a circle, no name stands for two types, libraries do not know the
//! command line, nothing is compiled for one architecture, and no file of tests is forgotten. That layers use lower ones only is the compiler's part.

mod advice;
mod architectures;
mod circles;
mod foreign_files;
mod imports;
mod names;
mod programs;
mod sources;
mod tokens;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use self::circles::circles;
use self::imports::Crate;
use self::names::{TypeName, doubles, type_names};
use self::programs::TestProgram;
use self::sources::sources;
use crate::common::test;

/// The layers of `report`, the lowest first.
const LAYERS: [&str; 4] = [
    "report/trace",
    "report/analysis",
    "report/view",
    "report/export",
];

/// The crates, as folders; "" is the program.
const CRATES: [&str; 15] = [
    "",
    "buildid-cache",
    "decode",
    "dwarf",
    "format",
    "record",
    "record/attach",
    "record/kernel",
    "record/watch",
    "report",
    "report/analysis",
    "report/export",
    "report/trace",
    "report/view",
    "unwind",
];

/// Crates in which no file reaches itself by the names that it imports either: those of files that re-export what others define.
const WITHOUT_FACADES: [&str; 2] = ["record/attach", "record/kernel"];

/// Crates that are no part of the program.
const OTHERS: [&str; 2] = ["python", "testing"];

/// The crates but for the program.
fn libraries() -> impl Iterator<Item = &'static str> {
    CRATES.into_iter().filter(|name| !name.is_empty())
}

/// The crates that are looked at, which all tests share.
static SOURCES: LazyLock<BTreeMap<&str, Crate>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = CRATES.into_iter().chain(OTHERS);
    names
        .map(|name| (name, Crate::read(&root.join(name).join("src"))))
        .collect()
});

#[test]
fn files_import_each_other_in_no_circle() {
    // `report` is one file.
    let crates = CRATES.into_iter().filter(|name| *name != "report");
    for name in crates.chain(["python"]) {
        let imports = SOURCES[name].imports(WITHOUT_FACADES.contains(&name));
        assert!(
            imports.len() >= 7,
            "{name}: imports are found: {}",
            imports.len()
        );
        let circles = circles(&imports);
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

/// The types of a crate with the files that define them.
fn types(name: &str) -> Vec<(TypeName, String)> {
    let types = SOURCES[name].sources().flat_map(|(file, source)| {
        let place = format!("{name}/src/{file}.rs");
        let found = type_names(source).into_iter();
        found.map(move |known| (known, place.clone()))
    });
    types.collect()
}

#[test]
fn an_exported_name_stands_for_one_type_of_all_crates() {
    // Below `record`, only the recorder itself sees them.
    let seen = CRATES.iter().filter(|name| !name.starts_with("record/"));
    let all = seen.flat_map(|name| types(name));
    let exported: Vec<_> = all.filter(|(known, _)| known.is_exported).collect();
    let count = exported.len();
    assert!(count > 100, "types are found: {count}");
    let doubles = doubles(exported.into_iter());
    assert!(doubles.is_empty(), "{doubles:#?}");
}

#[test]
fn a_name_stands_for_one_type_of_its_crate() {
    // Either of two implementations is compiled, with the same names.
    let is_alternative = |place: &str| place == "format/src/trace/codec/pure.rs";
    let alone = CRATES.into_iter().filter(|name| !LAYERS.contains(name));
    let alone = alone.chain(OTHERS).map(|name| vec![name]);
    for crates in alone.chain([LAYERS.to_vec()]) {
        let types = crates.iter().flat_map(|name| types(name));
        let doubles = doubles(types.filter(|(_, place)| !is_alternative(place)));
        assert!(doubles.is_empty(), "{crates:?}: {doubles:#?}");
    }
}

#[test]
fn every_file_of_tests_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = CRATES.map(|name| root.join(name).join("tests"));
    let programs: Vec<TestProgram> = folders
        .iter()
        .filter_map(|at| TestProgram::read(at))
        .collect();
    let files: usize = programs.iter().map(|program| program.files.len()).sum();
    assert!(files > 60, "files of tests are found: {files}");
    for program in programs {
        let forgotten: Vec<&String> = program.files.difference(&program.modules).collect();
        assert!(forgotten.is_empty(), "no program has these: {forgotten:?}");
    }
}

/// Cargo compiles and runs no examples of crates with `doctest = false`.
#[test]
fn examples_in_documentation_are_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let others = ["testing", "testing/macros"];
    for name in libraries().chain(others) {
        let manifest = root.join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("a manifest");
        let sources = sources(&Path::new(name).join("src"));
        let lines = sources.iter().flat_map(|(_, source)| source.lines());
        let comments = lines.filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("/// ").or(line.strip_prefix("//! "))
        });
        let fences = comments.filter_map(|line| line.strip_prefix("```"));
        // Each second one ends what the one before begins.
        let has_examples = fences.step_by(2).any(|language| language != "text");
        let are_tested = !manifest.contains("doctest = false");
        assert_eq!(has_examples, are_tested, "{name}: examples, [lib] doctest");
    }
}

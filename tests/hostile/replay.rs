//! Inputs that once found a bug: the same functions as in `fuzz/`, without
//! libFuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fuzz::TARGETS;

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn no_input_does_harm_again() {
    for dir in files(&inputs()).iter().filter(|path| path.is_dir()) {
        let name = dir.file_name().unwrap().to_str().unwrap();
        let target = TARGETS.iter().find(|(target, _)| *target == name);
        let (_, run) = target.unwrap_or_else(|| panic!("no target {name}"));
        for input in files(dir) {
            let bytes = fs::read(&input).unwrap();
            // So that a panic or a hang is known by its input.
            eprintln!("{}", input.display());
            run(&bytes);
        }
    }
}

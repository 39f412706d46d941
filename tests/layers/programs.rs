//! The files of a program of tests that names its modules in `main.rs`.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// Names of the files beside `main.rs`, and those of its modules: what is in the first set only is never compiled.
pub(crate) struct TestProgram {
    pub(crate) files: BTreeSet<String>,
    pub(crate) modules: BTreeSet<String>,
}

impl TestProgram {
    /// Reads a folder; `None` if it has no `main.rs`, so that each of its files is a program.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let main = read_to_string(folder.join("main.rs")).ok()?;
        let module = |line: &str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        let entries = read_dir(folder).expect("a folder of tests");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let stem = path.file_stem()?.to_str()?;
            (is_source && stem != "main").then(|| stem.to_owned())
        };
        Some(Self {
            files: entries.filter_map(name).collect(),
            modules: main.lines().filter_map(module).collect(),
        })
    }
}

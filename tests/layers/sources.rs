//! The Rust sources of a folder.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// All sources below a folder of this repository, with their paths from its root.
pub(crate) fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in read_dir(root.join(folder)).expect("a folder of sources") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = read_to_string(entry.path()).expect("a source");
            found.push((path, source));
        }
    }
    found
}

//! No test is left out: the compiler drops a `#[test]` that is not ours without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::test;

/// How often each file has the attribute.
fn written(directory: &Path, found: &mut BTreeMap<PathBuf, usize>) {
    for entry in std::fs::read_dir(directory).expect("our directory") {
        let path = entry.expect("an entry").path();
        // Other programs' tests.
        if path.ends_with("tests/hostile") || path.ends_with("tests/guests") {
            continue;
        }
        if path.is_dir() {
            written(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let count = code.filter(|line| line.contains("#[test]")).count();
            if count > 0 {
                found.insert(path, count);
            }
        }
    }
}

#[test]
fn every_test_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = BTreeMap::new();
    written(&root.join("tests"), &mut sources);
    for test in usdtrec_testing::tests() {
        if let Some(left) = sources.get_mut(&root.join(test.file)) {
            // A macro makes several tests of one.
            *left = left.saturating_sub(1);
        }
    }
    // Here it is in a text, too.
    sources.remove(&root.join(file!()));
    sources.retain(|_, left| *left > 0);
    assert!(
        sources.is_empty(),
        "usdtrec_testing::test is not imported where these stand: {sources:?}"
    );
}

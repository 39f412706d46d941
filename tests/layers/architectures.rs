//! What differs between machines is a table in `format/src/arch/`, not compiled for one of them.

use std::path::Path;

use super::CRATES;
use super::sources::sources;
use super::tokens::tokens;
use crate::common::test;

/// Its probes are instructions of the machine that it is compiled for.
const EXCEPTION: &str = "src/sdt.rs";

#[test]
fn nothing_is_compiled_for_one_architecture() {
    let mut has_exception = false;
    for name in CRATES {
        for (file, source) in sources(&Path::new(name).join("src")) {
            let names_it = source.contains("target_arch");
            let is_bound = names_it && tokens(&source).iter().any(|word| word == "target_arch");
            match file == Path::new(EXCEPTION) {
                true => has_exception |= is_bound,
                false => assert!(!is_bound, "{}: cfg(target_arch)", file.display()),
            }
        }
    }
    assert!(has_exception, "{EXCEPTION} is an exception no more");
}

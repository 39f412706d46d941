//! Documents, and sections of them, that are generated and checked in.

#![allow(
    clippy::unwrap_used,
    reason = "what does not hold in a test is a failed test"
)]

use std::fs;
use std::path::Path;

/// Compares a document with its text. With `USDTREC_UPDATE` in the environment it is written.
///
/// # Panics
/// If they differ.
pub fn compare_document(path: &Path, text: &str) {
    if std::env::var_os("USDTREC_UPDATE").is_some() {
        fs::write(path, text).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not current: run this test with USDTREC_UPDATE=1",
        path.display()
    );
}

/// The same with a section of a document, which is between `<!-- generated: NAME -->` and `<!-- end -->`.
///
/// # Panics
/// If they differ, and without such a section.
pub fn compare_section(path: &Path, name: &str, text: &str) {
    let kept = fs::read_to_string(path).unwrap();
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = kept.split_once(&begin).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let text = format!("{before}{begin}\n{text}\n<!-- end -->{after}");
    compare_document(path, &text);
}

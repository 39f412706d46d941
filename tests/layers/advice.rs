//! Libraries never print the command line's advice: no text of theirs names an option or the program.

use std::path::{Path, PathBuf};

use super::sources::sources;
use super::tokens::all_tokens;
use crate::common::test;

/// Phrases with options of other programs, which no text can do without.
const ALLOWED: [&str; 2] = [
    // perf's documentation has no other name for its directories of traces.
    "perf record --threads",
    // Registers that perf's fields show.
    "perf script -F uregs",
];

/// What a text says of the command line: an option, or the program with a verb.
fn command_line(literal: &str) -> Option<String> {
    let mut text = literal.to_owned();
    for phrase in ALLOWED {
        text = text.replace(phrase, "");
    }
    let separates = |c: char| c.is_whitespace() || "\"'`();:=".contains(c);
    let words = text.split(separates).filter(|word| !word.is_empty());
    let mut words = words.map(|word| word.trim_end_matches(','));
    // Alone it is a name, of a map or a directory.
    let is_sentence = words.clone().count() > 1;
    if is_sentence && words.clone().any(|word| word == "usdtrec") {
        return Some("usdtrec".to_owned());
    }
    let is_letter = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_option = |word: &&str| match word.strip_prefix("--") {
        Some(rest) => is_letter(rest),
        None => word.len() == 2 && word.strip_prefix('-').is_some_and(is_letter),
    };
    words.find(is_option).map(str::to_owned)
}

fn is_test(file: &Path) -> bool {
    let mut parts = file.components();
    parts.any(|part| Path::new(&part).file_stem() == Some("tests".as_ref()))
}

#[test]
fn options_and_the_program_are_found() {
    for text in [
        "give --buildid-dir",
        "`usdtrec doctor` lists them",
        "record it with: -p {pid}",
        "(--force records all the same)",
    ] {
        assert!(command_line(text).is_some(), "{text}");
    }
    for text in [
        "a directory of perf record --threads",
        "link with -Wl,--build-id",
        "/run/usdtrec: {error}",
        "usdtrec",
        "a - b, --",
        "-1",
    ] {
        assert_eq!(command_line(text), None, "{text}");
    }
}

#[test]
fn libraries_name_neither_options_nor_the_program() {
    let mut texts = 0;
    let mut found = Vec::new();
    for library in super::libraries() {
        let folder = PathBuf::from(library).join("src");
        for (file, source) in sources(&folder)
            .into_iter()
            .filter(|(file, _)| !is_test(file))
        {
            let literals = all_tokens(&source).into_iter();
            for literal in literals.filter(|token| token.is_literal && !token.text.starts_with('b'))
            {
                texts += 1;
                if let Some(what) = command_line(&literal.text) {
                    let file = file.display();
                    found.push(format!("{file}: {what} in {}", literal.text));
                }
            }
        }
    }
    assert!(texts > 1000, "texts are found: {texts}");
    assert!(
        found.is_empty(),
        "the advice belongs to src/advice.rs: {found:#?}"
    );
}

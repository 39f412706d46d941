//! `--to html` in a browser: Chromium loads a page without a fault or a request, and the page does what its reader asks for.

use std::path::Path;

use serde_json::Value as Json;

use super::nasty::Nasty;
use crate::common::{Lab, need_tool, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// What a reader sees who uses a page, without a fault.
#[track_caller]
fn used(lab: &Lab, page: &Path) -> Json {
    need_tool("chromium");
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/browser.py");
    let mut python = lab.at_home(Path::new("python3"), [driver]);
    python.arg(page);
    let seen: Json = serde_json::from_str(&run(python).success().stdout).expect("JSON");
    assert_eq!(list(&seen["faults"]), &[] as &[Json]);
    let [only] = list(&seen["requests"]) else {
        panic!("requests of others: {}", seen["requests"])
    };
    assert!(text(only).starts_with("file:///"), "{only}");
    seen
}

fn list(value: &Json) -> &[Json] {
    value.as_array().expect("a list")
}

fn text(value: &Json) -> &str {
    value.as_str().expect("a text")
}

/// What holds of all pages with events.
#[track_caller]
fn check(seen: &Json) {
    let [descending, ascending] = list(&seen["sorted"]) else {
        panic!("two orders: {}", seen["sorted"])
    };
    let counts = |list: &Json| -> Vec<u64> {
        let counts = list.as_array().expect("counts").iter();
        counts
            .map(|count| count.as_u64().expect("a count"))
            .collect()
    };
    let (descending, ascending) = (counts(descending), counts(ascending));
    assert!(descending.len() > 1);
    assert!(descending.is_sorted_by(|a, b| a >= b), "{descending:?}");
    assert!(ascending.is_sorted(), "{ascending:?}");

    let search = &seen["search"];
    let name = text(&search["name"]).to_lowercase();
    let has = |row: &Json| text(row).to_lowercase().contains(&name);
    let (shown, hidden) = (list(&search["shown"]), list(&search["hidden"]));
    assert!(!shown.is_empty() && !hidden.is_empty());
    assert!(shown.iter().all(has), "{shown:?}");
    assert!(!hidden.iter().any(has), "{hidden:?}");
    let rows = match shown.len() {
        1 => "1 row".to_owned(),
        number => format!("{number} rows"),
    };
    assert!(text(&search["said"]).starts_with(&rows), "{search}");

    assert_ne!(seen["letters"][0], seen["letters"][1], "light and dark");
    assert_eq!(seen["telephone"][0], seen["telephone"][1], "its width");
    assert_eq!(list(&seen["narrow"]), &[] as &[Json], "a telephone");
}

#[test]
fn a_page_sorts_and_searches_in_a_browser() {
    let lab = Lab::new();
    let export = ["export", "-i", DEMO, "--to", "html", "-o", "page.html"];
    lab.usdtrec(export).success();
    check(&used(&lab, &lab.file("page.html")));
}

/// Names and strings of programs neither break the page nor run; a frame of a flame graph becomes as wide as the picture.
#[test]
fn a_page_of_hostile_names_and_stacks_works_in_a_browser() {
    let nasty = Nasty::record(50, &["-g"]);
    // The name says that it is a page.
    let page = nasty.lab.file("page.html");
    std::fs::rename(nasty.export("html", &[]), &page).expect("a page");
    let seen = used(&nasty.lab, &page);
    check(&seen);
    assert_eq!(seen["zoomed"], "100%");
}

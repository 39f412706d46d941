//! Circles of imports.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Import;
use crate::common::test;

/// The largest sets of files of which each reaches each other one by imports.
pub(crate) fn circles(imports: &[Import]) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        next.entry(&import.from).or_default().insert(&import.to);
    }
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut due: Vec<&str> = next.get(from).into_iter().flatten().copied().collect();
        while let Some(file) = due.pop() {
            if seen.insert(file) {
                due.extend(next.get(file).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|&file| (file, reach(file))).collect();
    let mut found = BTreeSet::new();
    for (file, reaches) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(file));
        let circle: BTreeSet<String> = reaches
            .iter()
            .filter(back)
            .map(ToString::to_string)
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

#[test]
fn a_circle_is_found_and_a_diamond_is_none() {
    let import = |(from, to): (&str, &str)| Import {
        from: from.to_owned(),
        to: to.to_owned(),
        item: "X".to_owned(),
    };
    let diamond = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")];
    assert!(circles(&diamond.map(import)).is_empty());
    let circle = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let expected = BTreeSet::from(["b".to_owned(), "c".to_owned()]);
    assert_eq!(circles(&circle.map(import)), [expected]);
}

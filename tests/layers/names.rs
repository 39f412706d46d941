//! Names of types: one type each.

use std::collections::BTreeMap;

use super::tokens::tokens;
use crate::common::test;

/// A type, trait or alias that other files can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) name: String,
    /// Whether it is `pub`; else it is `pub(crate)`.
    pub(crate) is_exported: bool,
}

/// The types that a file defines for others, from the tokens of its source.
pub(crate) fn type_names(source: &[String]) -> Vec<TypeName> {
    const KINDS: [&str; 4] = ["struct", "enum", "trait", "type"];
    let token = |at: usize| source.get(at).map_or("", String::as_str);
    let starts = (0..source.len()).filter(|&at| token(at) == "pub");
    let names = starts.filter_map(|at| {
        let is_limited = token(at + 1) == "(";
        let kind = if is_limited { at + 4 } else { at + 1 };
        let is_of_crate = is_limited && token(at + 2) == "crate";
        let is_type = KINDS.contains(&token(kind)) && (is_of_crate || !is_limited);
        is_type.then(|| TypeName {
            name: token(kind + 1).to_owned(),
            is_exported: !is_limited,
        })
    });
    names.collect()
}

/// The names of several types, with the places of these.
pub(crate) fn doubles(types: impl Iterator<Item = (TypeName, String)>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (known, place) in types {
        places.entry(known.name).or_default().push(place);
    }
    let doubles = places.into_iter().filter(|(_, places)| places.len() > 1);
    let doubles = doubles.map(|(name, places)| format!("{name}: {}", places.join(", ")));
    doubles.collect()
}

#[test]
fn types_of_one_name_are_found() {
    let types = |source: &str, place: &str| {
        let names = type_names(&tokens(source)).into_iter();
        let types = names.map(|name| (name, place.to_owned()));
        types.collect::<Vec<_>>()
    };
    let one = types(
        "pub struct Probe { pub name: String } pub(super) struct Site; impl Site { pub fn struct_of() {} }",
        "one.rs",
    );
    let other = types(
        "pub(crate) enum Probe { A } pub(crate) type Site = u8; struct Hit;",
        "other.rs",
    );
    assert!(one[0].0.is_exported && !other[0].0.is_exported);
    let both = one.into_iter().chain(other);
    assert_eq!(doubles(both), ["Probe: one.rs, other.rs"]);
}

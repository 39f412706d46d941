//! Attributes that OpenTelemetry's semantic conventions know.

use std::sync::LazyLock;

use thiserror::Error;

use crate::schema::name_parts::{arguments_of, name_parts};

/// Version of the conventions.
pub const VERSION: &str = "1.44.0";
/// Where a version of the conventions says how names have changed since others: `schema_url` of OTLP.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Lines `NAME TYPE`, sorted by name.
const TEXT: &str = include_str!("../../../conventions/opentelemetry-1.44.0.txt");

static ALL: LazyLock<Vec<(&str, ConventionType)>> = LazyLock::new(|| {
    let lines = TEXT.lines().filter_map(|line| line.split_once(' '));
    let named = lines.filter(|(name, _)| *name != "#");
    named.map(|(name, kind)| (name, kind.into())).collect()
});

/// Type of an attribute in the conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConventionType {
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// A float.
    Float,
    /// True or false.
    Bool,
    /// A list, or a value of any type.
    List,
    /// A text of an attribute whose name has further words.
    TextTemplate,
    /// A list of an attribute whose name has further words.
    ListTemplate,
}

/// Why a value of an attribute is not as the conventions have it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConventionDoubt {
    /// The conventions have names that begin with the same word, and not this one.
    #[error("not in the OpenTelemetry semantic conventions {VERSION}")]
    Unknown,
    /// The attribute is not a single value.
    #[error("a list in the OpenTelemetry semantic conventions {VERSION}, and here a single value")]
    List,
    /// The value is a text and should be a number.
    #[error(
        "a number in the OpenTelemetry semantic conventions {VERSION}, and here the text {0:?}"
    )]
    Text(String),
}

impl From<&str> for ConventionType {
    fn from(name: &str) -> Self {
        match name {
            "string" => Self::Text,
            "int" => Self::Integer,
            "double" => Self::Float,
            "boolean" => Self::Bool,
            "template[string]" => Self::TextTemplate,
            "template[string[]]" => Self::ListTemplate,
            _ => Self::List,
        }
    }
}

/// The type of an attribute; `None` if the conventions do not have it.
#[must_use]
pub fn kind(name: &str) -> Option<ConventionType> {
    let find = |name: &str| {
        let at = ALL.binary_search_by_key(&name, |(known, _)| known);
        at.ok().and_then(|at| ALL.get(at)).map(|(_, kind)| *kind)
    };
    if let Some(kind) = find(name) {
        return Some(kind);
    }
    let dots = name.match_indices('.').map(|(at, _)| at);
    let mut beginnings = dots.filter_map(|at| find(name.get(..at)?));
    beginnings.find_map(|kind| match kind {
        ConventionType::TextTemplate => Some(ConventionType::Text),
        ConventionType::ListTemplate => Some(ConventionType::List),
        _ => None,
    })
}

/// Compares an attribute and its value with the conventions. A name whose first word no attribute there has is of the program's own.
#[must_use]
pub fn doubt(name: &str, value: &str) -> Option<ConventionDoubt> {
    let Some(kind) = kind(name) else {
        let first = name.split('.').next();
        let is_there = ALL
            .iter()
            .any(|(known, _)| known.split('.').next() == first);
        return is_there.then_some(ConventionDoubt::Unknown);
    };
    let parts = name_parts(value)?;
    let is_constant = arguments_of(&parts).next().is_none();
    match kind {
        ConventionType::List => Some(ConventionDoubt::List),
        ConventionType::TextTemplate | ConventionType::ListTemplate => {
            Some(ConventionDoubt::Unknown)
        }
        ConventionType::Integer if is_constant && value.parse::<i64>().is_err() => {
            Some(ConventionDoubt::Text(value.to_owned()))
        }
        ConventionType::Integer if parts.len() > 1 => Some(ConventionDoubt::Text(value.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_their_types() {
        assert!(ALL.len() > 700 && ALL.is_sorted_by_key(|(name, _)| *name));
        for (name, expected) in [
            ("db.query.text", Some(ConventionType::Text)),
            ("code.line.number", Some(ConventionType::Integer)),
            ("jvm.thread.daemon", Some(ConventionType::Bool)),
            ("db.query.parameter.0", Some(ConventionType::Text)),
            ("db.query", None),
            ("db.query.text.more", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        assert!(SCHEMA_URL.ends_with(VERSION));
    }

    #[test]
    fn what_differs_is_found() {
        use ConventionDoubt::{List, Text, Unknown};
        for (name, value, expected) in [
            ("db.query.text", "{query}", None),
            ("db.query.txt", "{query}", Some(Unknown)),
            ("db.query.parameter", "{query}", Some(Unknown)),
            ("shop.cart", "{cart}", None),
            ("server.port", "5432", None),
            ("server.port", "http", Some(Text("http".to_owned()))),
            ("server.port", "{a}{b}", Some(Text("{a}{b}".to_owned()))),
            ("process.command_args", "{a}", Some(List)),
            ("http.request.header.host", "{a}", Some(List)),
        ] {
            assert_eq!(doubt(name, value), expected, "{name}");
        }
    }
}

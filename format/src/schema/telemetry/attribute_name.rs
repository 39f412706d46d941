//! Names of attributes.

use thiserror::Error;

/// Attributes that every exported span may have, whatever schemas say.
const TAKEN: [&str; 5] = [
    "code.stacktrace",
    "self_ns",
    "span",
    "thread.id",
    "thread.name",
];
/// What names of attributes begin with that arguments have.
const TAKEN_BEGINNINGS: [&str; 2] = ["begin.", "end."];

/// Why a name is no name of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttributeNameError {
    /// It is malformed.
    #[error(
        "{0:?} is not the name of an attribute: expected lower-case words with points between them, such as db.query.text"
    )]
    Malformed(String),
    /// Spans have another attribute of the name.
    #[error("{0}: spans have an attribute of that name without a schema")]
    Taken(String),
}

/// Checks a name: lower-case letters, digits, underscores and hyphens, in words with points between them, as
/// OpenTelemetry's rules for names have it; and none that spans have anyway.
///
/// # Errors
/// [`AttributeNameError`].
pub fn check(name: &str) -> Result<(), AttributeNameError> {
    let plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-')
    };
    let word = |word: &str| !word.is_empty() && word.chars().all(plain);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.split('.').all(word) {
        return Err(AttributeNameError::Malformed(name.to_owned()));
    }
    let begins = |beginning: &&str| name.starts_with(*beginning);
    if TAKEN.contains(&name) || TAKEN_BEGINNINGS.iter().any(begins) {
        return Err(AttributeNameError::Taken(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_points() {
        for right in [
            "db.query.text",
            "shop",
            "com.acme.key2",
            "http.request.header.content-type",
        ] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in [
            "", ".", "a.", ".a", "a..b", "Db.x", "a b", "2a", "é", "a.{b}",
        ] {
            let error = check(wrong);
            assert!(
                matches!(error, Err(AttributeNameError::Malformed(_))),
                "{wrong}"
            );
        }
        for taken in ["begin.x", "end.cpu", "thread.id"] {
            let error = check(taken);
            assert_eq!(error, Err(AttributeNameError::Taken(taken.to_owned())));
        }
    }
}

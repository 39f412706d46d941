//! Names in schemas.

/// Whether a word is a valid argument name: letters, digits and underscores, not starting with a digit.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

//! Names in schemas and in notes, and counts in messages.

/// Whether a word is a valid argument name: letters, digits and underscores, not starting with a digit.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// `1 byte`, `2 bytes`.
#[cfg(feature = "schemas")]
pub(super) fn counted(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// The name of a probe in notes: DTrace's hyphens are two underscores.
#[cfg(feature = "schemas")]
pub(super) fn note_name(name: &str) -> String {
    name.replace('-', "__")
}

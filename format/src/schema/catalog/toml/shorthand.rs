//! Arguments written in one line: `NAME: TYPE [UNIT] [enum(WORDS)|flags(WORDS)] [= CAPTURE] [; DESCRIPTION]`.

use thiserror::Error;

/// The parts of an argument, as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shorthand<'t> {
    pub(super) name: &'t str,
    pub(super) kind: Option<&'t str>,
    pub(super) unit: Option<&'t str>,
    /// Name of the words of an enumeration.
    pub(super) words: Option<&'t str>,
    /// Name of the words of flags.
    pub(super) flags: Option<&'t str>,
    /// Expression that is captured instead of the argument.
    pub(super) capture: Option<&'t str>,
    pub(super) description: Option<&'t str>,
}

/// A part that the line has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "unexpected {word:?} at byte {}: expected NAME: TYPE [UNIT] [enum(WORDS)|flags(WORDS)] [= CAPTURE] [; DESCRIPTION]",
    .at + 1
)]
pub(super) struct RepeatedPart<'t> {
    /// The word.
    pub(super) word: &'t str,
    /// Its offset in the line, bytes.
    pub(super) at: usize,
}

/// Splits a line.
pub(super) fn split(line: &str) -> Result<Shorthand<'_>, RepeatedPart<'_>> {
    let whole = line;
    let (line, description) = match line.split_once(';') {
        Some((line, description)) => (line, Some(description.trim())),
        None => (line, None),
    };
    let (line, capture) = match line.split_once('=') {
        Some((line, capture)) => (line, Some(capture.trim())),
        None => (line, None),
    };
    let (name, rest) = line.split_once(':').unwrap_or((line, ""));
    let mut parts = Shorthand {
        name: name.trim(),
        capture,
        description: description.filter(|words| !words.is_empty()),
        ..Shorthand::default()
    };
    for word in rest.split_whitespace() {
        let inside = |kind: &str| {
            word.strip_prefix(kind)?
                .strip_prefix('(')?
                .strip_suffix(')')
        };
        let (slot, value) = if let Some(words) = inside("enum") {
            (&mut parts.words, words)
        } else if let Some(words) = inside("flags") {
            (&mut parts.flags, words)
        } else if parts.kind.is_none() && parts.words.is_none() && parts.flags.is_none() {
            (&mut parts.kind, word)
        } else {
            (&mut parts.unit, word)
        };
        if slot.replace(value).is_some() {
            // The word is part of the line.
            let at = word.as_ptr().addr() - whole.as_ptr().addr();
            return Err(RepeatedPart { word, at });
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_may_be_there_or_not() {
        let full = split("a: u32 bytes enum(x) ; what: it; is").unwrap();
        let expected = Shorthand {
            name: "a",
            kind: Some("u32"),
            unit: Some("bytes"),
            words: Some("x"),
            flags: None,
            capture: None,
            description: Some("what: it; is"),
        };
        assert_eq!(full, expected);
        let captured = split("type: ptr mangled = str(*(type+8)) ; a=b").unwrap();
        assert_eq!(captured.capture, Some("str(*(type+8))"));
        assert_eq!(
            (captured.kind, captured.unit),
            (Some("ptr"), Some("mangled"))
        );
        assert_eq!(captured.description, Some("a=b"));
        let bare = split(" name ").unwrap();
        assert_eq!((bare.name, bare.kind), ("name", None));
        let flags = split("m:flags(f)").unwrap();
        assert_eq!((flags.kind, flags.flags), (None, Some("f")));
        let repeated = RepeatedPart { word: "ns", at: 13 };
        assert_eq!(split("a: u32 bytes ns = b"), Err(repeated));
    }
}

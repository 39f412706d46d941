//! Texts in which arguments in braces stand for their values: names of functions, attributes of spans.

/// A part of such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamePart<'c> {
    /// A text as it is.
    Text(&'c str),
    /// The value of the argument of this name.
    Argument(&'c str),
}

/// The parts of a text; `None` if a brace has no partner, or there is nothing between two.
#[must_use]
pub fn name_parts(text: &str) -> Option<Vec<NamePart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((text, after)) = rest.split_once('{') {
        let (argument, after) = after.split_once('}')?;
        if text.contains('}') || argument.is_empty() || argument.contains('{') {
            return None;
        }
        if !text.is_empty() {
            parts.push(NamePart::Text(text));
        }
        parts.push(NamePart::Argument(argument));
        rest = after;
    }
    if rest.contains('}') {
        return None;
    }
    if !rest.is_empty() {
        parts.push(NamePart::Text(rest));
    }
    Some(parts)
}

/// The names of the arguments among parts.
pub(super) fn arguments_of<'c>(parts: &[NamePart<'c>]) -> impl Iterator<Item = &'c str> {
    parts.iter().filter_map(|part| match part {
        NamePart::Argument(name) => Some(*name),
        NamePart::Text(_) => None,
    })
}

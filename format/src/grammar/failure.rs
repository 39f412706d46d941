//! Result of parsing.

use crate::operand::{OperandError, OperandErrorKind};

/// Result of parsing a part of an operand.
pub(super) type Parsed<'a, T> = Result<T, Failure<'a>>;

/// Why and where parsing stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure<'a> {
    /// The part of the operand's text that is not understood.
    place: &'a str,
    kind: OperandErrorKind,
}

impl OperandErrorKind {
    /// The failure at a part of the operand's text.
    pub(super) const fn at(self, place: &str) -> Failure<'_> {
        Failure { place, kind: self }
    }
}

impl Failure<'_> {
    /// The error of the operand, whose text contains the place.
    pub(super) fn in_operand(self, operand: &str) -> OperandError {
        let from_start = self
            .place
            .as_ptr()
            .addr()
            .checked_sub(operand.as_ptr().addr());
        let position = from_start.filter(|position| *position <= operand.len());
        OperandError {
            // A place that is no part of the text is an empty one that was made up for a missing part.
            position: position.unwrap_or(0),
            kind: self.kind,
        }
    }
}

/// The error for a text in place of which something else must stand.
pub(super) fn expected<'a>(expected: &'static str, found: &'a str) -> Failure<'a> {
    let found_text = found.to_owned();
    OperandErrorKind::Expected {
        expected,
        found: found_text,
    }
    .at(found)
}

//! The part of an operand before `@`: sign, size, float mark.

use super::failure::Parsed;
use crate::operand::OperandErrorKind;

/// The prefix of an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Bytes; `None` without a prefix.
    pub(super) size: Option<u8>,
    /// Whether signed; `None` without a prefix.
    pub(super) signed: Option<bool>,
    /// Whether a floating-point number.
    pub(super) float: bool,
}

/// Sizes of integers and pointers. Structures passed by value have any size, but are in memory.
const INTEGERS: &[u8] = &[1, 2, 4, 8, 16];
/// Sizes of floating-point numbers; 12 and 16 are `long double`.
const FLOATS: &[u8] = &[2, 4, 8, 12, 16];

/// Splits an operand into its prefix and the rest, at the first `@`; a second one belongs to a relocation. An
/// `@` after a symbol does not end a prefix (`tlsd@tpoff`).
pub(super) fn parse(text: &str) -> Parsed<'_, (Prefix, &str)> {
    let Some((size, body)) = text.split_once('@') else {
        return Ok((Prefix::default(), text));
    };
    let size = size.trim_end();
    if size.is_empty()
        || !size
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-f".contains(&byte))
    {
        return Ok((Prefix::default(), text));
    }
    let malformed = || OperandErrorKind::Size(size.to_owned()).at(size);
    let digits = size.strip_prefix('-').unwrap_or(size);
    let (digits, float) = match digits.strip_suffix('f') {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let bytes: u8 = digits.parse().map_err(|_| malformed())?;
    let prefix = Prefix {
        size: Some(bytes),
        signed: Some(size.starts_with('-')),
        float,
    };
    if bytes == 0 || (float || prefix.signed == Some(true)) && !prefix.is_number() {
        return Err(prefix.unknown().at(size));
    }
    Ok((prefix, body.trim_start()))
}

impl Prefix {
    /// Whether a number can have this size.
    pub(super) fn is_number(&self) -> bool {
        let known = if self.float { FLOATS } else { INTEGERS };
        self.size.is_none_or(|bytes| known.contains(&bytes))
    }

    /// The error for an unknown size.
    pub(super) fn unknown(&self) -> OperandErrorKind {
        OperandErrorKind::ValueSize(self.size.unwrap_or_default())
    }
}

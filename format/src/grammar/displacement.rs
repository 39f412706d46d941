//! Displacements: sums of numbers and at most one symbol (`4+8-2`, `5+var+3`, `t1@GOTOFF+4`).

use super::failure::expected;
use super::{Parsed, number};
use crate::operand::{OperandErrorKind, Relocation};

/// A parsed displacement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Displacement<'a> {
    /// The symbol, if there is one.
    pub(super) symbol: Option<&'a str>,
    /// The relocation on the symbol, without its `@`.
    pub(super) reloc: Option<&'a str>,
    /// Sum of the numbers.
    pub(super) offset: i64,
    /// Number of terms.
    pub(super) terms: usize,
}

impl<'a> Displacement<'a> {
    /// Adds a relocation to the symbol, which must exist.
    pub(super) fn relocate(&mut self, reloc: &'a str) -> Parsed<'a, ()> {
        if self.symbol.is_none() || self.reloc.is_some() {
            return Err(OperandErrorKind::RelocationPlace(reloc.to_owned()).at(reloc));
        }
        self.reloc = Some(reloc.trim());
        Ok(())
    }

    /// The relocation, for an operand.
    pub(super) fn relocation(&self) -> Option<Relocation> {
        self.reloc.map(|name| Relocation(name.to_owned()))
    }
}

/// Parses a whole text; an empty one is 0.
pub(super) fn parse(text: &str) -> Parsed<'_, Displacement<'_>> {
    let mut sum = Displacement::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let negative = match rest.as_bytes().first() {
            Some(b'-') => true,
            Some(b'+') => false,
            _ if sum.terms == 0 => false,
            _ => return Err(expected("+ or -", rest)),
        };
        let term = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        rest = sum.add(term.trim_start(), negative)?.trim_start();
    }
    Ok(sum)
}

impl<'a> Displacement<'a> {
    /// Adds the term at the start of `text`. Returns the rest.
    fn add(&mut self, text: &'a str, negative: bool) -> Parsed<'a, &'a str> {
        self.terms += 1;
        if let Some((number, after)) = number::leading(text) {
            let number = number?;
            let sum = if negative {
                self.offset.checked_sub_unsigned(number)
            } else {
                self.offset.checked_add_unsigned(number)
            };
            self.offset = sum.ok_or_else(|| OperandErrorKind::DisplacementRange.at(text))?;
            return Ok(after);
        }
        let after = text.trim_start_matches(is_symbol_char);
        let symbol = &text[..text.len() - after.len()];
        // A dollar first is a constant's prefix.
        if symbol.is_empty() || symbol.starts_with('$') {
            return Err(expected("a number or a symbol", text));
        }
        if negative || self.symbol.is_some() {
            return Err(OperandErrorKind::SeveralSymbols(symbol.to_owned()).at(symbol));
        }
        self.symbol = Some(symbol);
        let Some(reloc) = after.strip_prefix('@') else {
            return Ok(after);
        };
        let after = reloc.trim_start_matches(|char| is_symbol_char(char) || char == '@');
        self.reloc = Some(&reloc[..reloc.len() - after.len()]).filter(|name| !name.is_empty());
        if self.reloc.is_none() {
            return Err(OperandErrorKind::NoRelocation(symbol.to_owned()).at(after));
        }
        Ok(after)
    }
}

/// Whether a character is allowed in a symbol's name.
fn is_symbol_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '$') || !char.is_ascii()
}

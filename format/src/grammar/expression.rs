//! Constant arithmetic (`$8|$4`, `!($0+$1)`), as in gdb: C's operators with C's precedence, on 64-bit
//! signed numbers that wrap.

use super::failure::{Failure, expected};
use super::{Parsed, number};
use crate::operand::OperandErrorKind;

/// A binary operator; `None` for a division by 0.
type Operation = fn(i64, i64) -> Option<i64>;

/// Binary operators with their precedence; longer ones before their prefixes.
const BINARY: &[(&str, u8, Operation)] = &[
    ("||", 1, |a, b| Some(i64::from(a != 0 || b != 0))),
    ("&&", 2, |a, b| Some(i64::from(a != 0 && b != 0))),
    ("<<", 8, |a, b| a.checked_shl(u32::try_from(b).ok()?)),
    (">>", 8, |a, b| a.checked_shr(u32::try_from(b).ok()?)),
    ("==", 6, |a, b| Some(i64::from(a == b))),
    ("!=", 6, |a, b| Some(i64::from(a != b))),
    ("<=", 7, |a, b| Some(i64::from(a <= b))),
    (">=", 7, |a, b| Some(i64::from(a >= b))),
    ("|", 3, |a, b| Some(a | b)),
    ("^", 4, |a, b| Some(a ^ b)),
    ("&", 5, |a, b| Some(a & b)),
    ("<", 7, |a, b| Some(i64::from(a < b))),
    (">", 7, |a, b| Some(i64::from(a > b))),
    ("+", 9, |a, b| Some(a.wrapping_add(b))),
    ("-", 9, |a, b| Some(a.wrapping_sub(b))),
    ("*", 10, |a, b| Some(a.wrapping_mul(b))),
    ("/", 10, i64::checked_div),
    ("%", 10, i64::checked_rem),
];

/// Maximum nesting depth of parentheses and signs, which limits the stack for a hostile note.
const DEPTH: u8 = 64;

/// Evaluates a whole text. Numbers have the `prefix`, which is optional if `bare`.
pub(super) fn evaluate<'a>(text: &'a str, prefix: Option<&'a str>, bare: bool) -> Parsed<'a, i64> {
    let mut parser = Parser {
        rest: text,
        prefix: prefix.unwrap_or_default(),
        bare,
        depth: 0,
    };
    let value = parser.binary(0)?;
    parser.skip_blanks();
    match parser.rest {
        "" => Ok(value),
        rest => Err(expected("an operator", rest)),
    }
}

/// The error at a parenthesis that is not closed.
const fn unclosed(opening: &str) -> Failure<'_> {
    let kind = OperandErrorKind::Unclosed {
        opening: '(',
        closing: ')',
    };
    kind.at(opening)
}

/// The rest of the text.
struct Parser<'a> {
    rest: &'a str,
    prefix: &'a str,
    bare: bool,
    depth: u8,
}

impl<'a> Parser<'a> {
    /// Operands joined by operators that bind more tightly than `minimum`.
    fn binary(&mut self, minimum: u8) -> Parsed<'a, i64> {
        let mut left = self.unary()?;
        loop {
            self.skip_blanks();
            let Some((token, binding, apply)) = BINARY
                .iter()
                .find(|(token, ..)| self.rest.starts_with(token))
                .filter(|(_, binding, _)| *binding > minimum)
            else {
                return Ok(left);
            };
            let at_operator = self.rest;
            self.rest = &self.rest[token.len()..];
            let right = self.binary(*binding)?;
            let no_result = OperandErrorKind::NoResult {
                left,
                operator: token,
                right,
            };
            left = apply(left, right).ok_or(no_result.at(at_operator))?;
        }
    }

    /// A number or a parenthesized expression, with an optional sign.
    fn unary(&mut self) -> Parsed<'a, i64> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(OperandErrorKind::Depth(DEPTH).at(self.rest));
        }
        let value = self.unary_inner();
        self.depth -= 1;
        value
    }

    fn unary_inner(&mut self) -> Parsed<'a, i64> {
        self.skip_blanks();
        match self.rest.as_bytes().first() {
            Some(b'-') => self.skip(1).unary().map(i64::wrapping_neg),
            Some(b'+') => self.skip(1).unary(),
            Some(b'~') => self.skip(1).unary().map(|value| !value),
            Some(b'!') => self.skip(1).unary().map(|value| i64::from(value == 0)),
            Some(b'(') => {
                let opening = self.rest;
                let value = self.skip(1).binary(0)?;
                self.skip_blanks();
                let after = self.rest.strip_prefix(')');
                self.rest = after.ok_or_else(|| unclosed(opening))?;
                Ok(value)
            }
            _ => self.number(),
        }
    }

    /// A number with its prefix and its own sign (`$-3`).
    fn number(&mut self) -> Parsed<'a, i64> {
        let rest = self.rest;
        let expected = || expected("a constant", rest);
        let digits = match self.rest.strip_prefix(self.prefix) {
            Some(digits) => digits,
            None if self.bare => self.rest,
            None => return Err(expected()),
        };
        let unsigned = digits.strip_prefix('-').unwrap_or(digits);
        let (number, after) = number::leading(unsigned).ok_or_else(expected)?;
        self.rest = after;
        let number = number?.cast_signed();
        Ok(if unsigned.len() < digits.len() {
            number.wrapping_neg()
        } else {
            number
        })
    }

    fn skip(&mut self, bytes: usize) -> &mut Self {
        self.rest = &self.rest[bytes..];
        self
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

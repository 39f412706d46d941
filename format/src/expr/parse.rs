//! Parses expressions.

use super::{BinaryOperator, Expr, ExprError, Name, ScalarType, Unary};
use crate::lexer::{EscapeError, Hash, Lexer, Token, TokenKind, integer, unquote};

/// Maximum nesting depth of brackets and unary operators.
const DEPTH: usize = 64;
/// Maximum number of tokens of an expression.
const WORDS: usize = 2000;

impl Expr {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`ExprError`] with the place in the text.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        Parser::new(text)?.whole()
    }

    /// Parses the tokens of an expression in another text.
    ///
    /// # Errors
    /// [`ExprError`] with the place in that text.
    #[cfg(feature = "schemas")]
    pub(crate) fn from_tokens(tokens: Vec<Token<'_>>) -> Result<Self, ExprError> {
        let end = tokens.last().map_or(0, |last| last.at);
        Parser::of_tokens(tokens, end)?.whole()
    }
}

/// A parser over tokens.
pub(super) struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
    depth: usize,
    /// Length of the text.
    end: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self, ExprError> {
        let tokens = Lexer::new(text, Hash::Odd).take(WORDS + 1).collect();
        Self::of_tokens(tokens, text.len())
    }

    fn of_tokens(tokens: Vec<Token<'t>>, end: usize) -> Result<Self, ExprError> {
        if let Some(last) = tokens.get(WORDS) {
            let message = format!("an expression of more than {WORDS} words");
            return Err(ExprError::new(last.at, message));
        }
        Ok(Self {
            tokens,
            at: 0,
            depth: 0,
            end,
        })
    }

    /// Parses an expression that all tokens are of.
    fn whole(mut self) -> Result<Expr, ExprError> {
        let expression = self.expression(0)?;
        self.end()?;
        Ok(expression)
    }

    fn peek(&self) -> Option<TokenKind<'t>> {
        self.kind(0)
    }

    fn kind(&self, ahead: usize) -> Option<TokenKind<'t>> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    /// Offset of the next token.
    pub(super) fn position(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |token| token.at)
    }

    pub(super) fn takes(&mut self, mark: &str) -> bool {
        let is = self.peek() == Some(TokenKind::Mark(mark));
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, mark: &str) -> Result<(), ExprError> {
        if self.takes(mark) {
            Ok(())
        } else {
            Err(self.unexpected(mark))
        }
    }

    pub(super) fn end(&self) -> Result<(), ExprError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("an operator or the end")),
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> ExprError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(TokenKind::Odd(what)) => what.to_owned(),
            Some(TokenKind::String(string)) => format!("\"{string}\""),
            Some(TokenKind::Char(text)) => format!("'{text}'"),
            Some(
                TokenKind::Name(word)
                | TokenKind::Number(word)
                | TokenKind::Mark(word)
                | TokenKind::Directive(word),
            ) => word.to_owned(),
        };
        ExprError::new(
            self.position(),
            format!("expected {expected}, found {found}"),
        )
    }

    /// `NAME=`, if that is what follows.
    pub(super) fn label(&mut self) -> Option<&'t str> {
        match (self.kind(0), self.kind(1)) {
            (Some(TokenKind::Name(name)), Some(TokenKind::Mark("="))) => {
                self.at += 2;
                Some(name)
            }
            _ => None,
        }
    }

    /// Parses an expression of operators with at least the precedence `least`.
    pub(super) fn expression(&mut self, least: u8) -> Result<Expr, ExprError> {
        let mut left = self.unary()?;
        while let Some((strength, operator)) = self.operator().filter(|(s, _)| *s >= least) {
            let at = self.position();
            self.at += 1;
            let right = self.expression(strength + 1)?;
            if operator == BinaryOperator::Glob
                && !matches!(&right, Expr::String(glob) if is_glob(glob))
            {
                return Err(ExprError::new(at, "expected a glob in quotes after ~"));
            }
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(u8, BinaryOperator)> {
        let Some(TokenKind::Mark(mark)) = self.peek() else {
            return None;
        };
        let known = BinaryOperator::ALL
            .iter()
            .find(|(symbol, ..)| *symbol == mark);
        known.map(|(_, strength, operator)| (*strength, *operator))
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        if self.depth == DEPTH {
            let message = format!("more than {DEPTH} brackets or operators in each other");
            return Err(ExprError::new(self.position(), message));
        }
        self.depth += 1;
        let expression = self.unary_in_depth();
        self.depth -= 1;
        expression
    }

    fn unary_in_depth(&mut self) -> Result<Expr, ExprError> {
        for (mark, operator) in [("!", Unary::Not), ("~", Unary::Complement)] {
            if self.takes(mark) {
                return Ok(Expr::Unary(operator, Box::new(self.unary()?)));
            }
        }
        if self.takes("-") {
            return Ok(match self.unary()? {
                Expr::Integer(number) => Expr::Integer(-number),
                Expr::Float(number) => Expr::Float(-number),
                inner => Expr::Unary(Unary::Negate, Box::new(inner)),
            });
        }
        if self.takes("+") {
            return self.unary();
        }
        let at = self.position();
        if self.takes("&") {
            return match self.unary()? {
                name @ Expr::Name(_) => Ok(Expr::Unary(Unary::Address, Box::new(name))),
                _ => Err(ExprError::new(
                    at,
                    "expected the name of an argument after &",
                )),
            };
        }
        if self.takes("*") {
            let word = match self.type_in_brackets(true) {
                Some(word) => word,
                None => ScalarType::Pointer,
            };
            return Ok(Expr::Load(word, Box::new(self.unary()?)));
        }
        if let Some(word) = self.type_in_brackets(false) {
            return Ok(Expr::Cast(word, Box::new(self.unary()?)));
        }
        self.primary()
    }

    /// `(TYPE)`, or `(TYPE*)` of a pointer.
    fn type_in_brackets(&mut self, pointer: bool) -> Option<ScalarType> {
        let Some(TokenKind::Name(name)) = self
            .kind(1)
            .filter(|_| self.peek() == Some(TokenKind::Mark("(")))
        else {
            return None;
        };
        let word = ScalarType::from_name(name)?;
        let words = if pointer { 4 } else { 3 };
        let star = !pointer || self.kind(2) == Some(TokenKind::Mark("*"));
        let closed = self.kind(words - 1) == Some(TokenKind::Mark(")"));
        (star && closed).then(|| {
            self.at += words;
            word
        })
    }

    fn primary(&mut self) -> Result<Expr, ExprError> {
        let at = self.position();
        let expected = "a number, a string, a name or (";
        let value = match self.peek() {
            Some(TokenKind::Mark("(")) => {
                self.at += 1;
                let inner = self.expression(0)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Some(TokenKind::Name(function @ ("str" | "bytes")))
                if self.kind(1) == Some(TokenKind::Mark("(")) =>
            {
                self.at += 2;
                return self.memory(function);
            }
            Some(TokenKind::Name("hi")) if self.kind(1) == Some(TokenKind::Mark("(")) => {
                self.at += 2;
                let inner = self.expression(0)?;
                self.expect(")")?;
                return match inner {
                    name @ Expr::Name(_) => Ok(Expr::upper_word(name)),
                    _ => Err(ExprError::new(
                        at,
                        "expected the name of an argument in hi()",
                    )),
                };
            }
            Some(TokenKind::Name(name)) if !name.starts_with(['$', '@']) => {
                let mut text = name.to_owned();
                while let (Some(TokenKind::Mark(".")), Some(TokenKind::Name(part))) =
                    (self.kind(1), self.kind(2))
                {
                    text = format!("{text}.{part}");
                    self.at += 2;
                }
                Expr::Name(Name { text, at })
            }
            Some(TokenKind::Number(written)) => {
                number(written).ok_or_else(|| no_number(at, written))?
            }
            Some(TokenKind::String(written)) => {
                Expr::String(unquote(written).map_err(|error| escape_error(at, error))?)
            }
            Some(TokenKind::Char(written)) => Expr::Integer(character(at, written)?),
            _ => return Err(self.unexpected(expected)),
        };
        self.at += 1;
        Ok(value)
    }

    /// Parses the arguments of `str` and `bytes`.
    fn memory(&mut self, function: &str) -> Result<Expr, ExprError> {
        let address = Box::new(self.expression(0)?);
        let has_length = self.takes(",");
        if !has_length && function == "bytes" {
            return Err(self.unexpected(", and the number of bytes"));
        }
        let length = has_length.then(|| self.expression(0)).transpose()?;
        self.expect(")")?;
        Ok(match (function, length.map(Box::new)) {
            ("bytes", Some(length)) => Expr::Bytes(address, length),
            (_, length) => Expr::Str(address, length),
        })
    }
}

fn number(written: &str) -> Option<Expr> {
    if let Some(whole) = integer(written) {
        return Some(Expr::Integer(whole.into()));
    }
    if let Some(bytes) = size(written) {
        return Some(Expr::Integer(bytes.into()));
    }
    let is_float = written.contains(['.', 'e', 'E']);
    let plain = is_float
        && written
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let float: f64 = written.parse().ok().filter(|_| plain)?;
    if !float.is_finite() {
        return None;
    }
    // `1e6` is an integer.
    let is_whole = !written.contains('.') && float.fract() == 0.0 && float < 2_f64.powi(53);
    Some(match is_whole {
        true => Expr::Integer(float as i128),
        false => Expr::Float(float),
    })
}

/// Parses a size such as `4k`, `64M` or `1G` (powers of 1024).
fn size(written: &str) -> Option<u64> {
    let last = written.chars().last()?;
    let factor = match last {
        'k' | 'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        _ => return None,
    };
    let digits = written.strip_suffix(last)?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let whole = integer(digits).filter(|_| is_plain)?;
    whole.checked_mul(factor)
}

fn no_number(at: usize, written: &str) -> ExprError {
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = written.strip_prefix(digits).unwrap_or("");
    if digits.parse::<f64>().is_ok() && ["s", "ms", "us", "ns"].contains(&unit) {
        let message = format!(
            "{written} is a time, and arguments are plain numbers: write it in the argument's unit, as 1e6 for a millisecond in ns; the duration of a span is called span, as in span > 5ms"
        );
        return ExprError::new(at, message);
    }
    let is_decimal = written.bytes().all(|byte| byte.is_ascii_digit());
    if is_decimal && written.starts_with('0') && written.contains(['8', '9']) {
        let message =
            format!("{written} begins with 0 and is octal, as in C: its digits are up to 7");
        return ExprError::new(at, message);
    }
    let message = format!("{written} is no number up to 2^64-1, nor a size as 4k, 64M or 1G");
    ExprError::new(at, message)
}

/// The number of the character between the quotes of which the first is at `at`.
fn character(at: usize, written: &str) -> Result<i128, ExprError> {
    let bytes = unquote(written).map_err(|error| escape_error(at, error))?;
    match bytes[..] {
        [byte] => Ok(byte.into()),
        _ => {
            let message = format!("expected one byte between quotes, found {}", bytes.len());
            Err(ExprError::new(at, message))
        }
    }
}

/// The error of an escape between quotes of which the first is at `at`.
fn escape_error(at: usize, error: EscapeError) -> ExprError {
    ExprError::new(at + 1 + error.at, error.fault.to_string())
}

/// Whether bytes are a valid glob.
fn is_glob(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text);
    text.is_ok_and(|text| glob::Pattern::new(text).is_ok())
}

//! A lexer for C-like texts: provider files, expressions.

use thiserror::Error;

/// A token, and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// Offset in the text, bytes.
    pub(crate) at: usize,
    pub(crate) kind: TokenKind<'t>,
}

/// Words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind<'t> {
    /// A name; it may begin with `$` or `@`.
    Name(&'t str),
    /// A number as written.
    Number(&'t str),
    /// The text between double quotes, as written.
    String(&'t str),
    /// The text between single quotes, as written.
    Char(&'t str),
    /// An operator or a bracket.
    Mark(&'t str),
    /// A line that begins with `#`, without it.
    Directive(&'t str),
    /// An error: an unexpected character, or a token that does not end.
    Odd(&'static str),
}

/// The meaning of `#`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// The line is a directive.
    Directive,
    /// Nothing.
    Odd,
}

/// Operators of more than one character, the longest first.
const LONG: [&str; 12] = [
    "<<=", ">>=", "...", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "->",
];

/// Splits a text into tokens, skipping whitespace and comments.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    hash: Hash,
}

impl<'t> Lexer<'t> {
    pub(crate) const fn new(text: &'t str, hash: Hash) -> Self {
        Self { text, at: 0, hash }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Takes `len` bytes.
    fn take(&mut self, len: usize) -> &'t str {
        let taken = self.rest().get(..len).unwrap_or_else(|| self.rest());
        self.at += taken.len();
        taken
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        self.take(rest.find(|c| !fits(c)).unwrap_or(rest.len()))
    }

    /// Skips whitespace and comments. Returns an error token for a comment that does not end.
    fn skip(&mut self) -> Option<Token<'t>> {
        loop {
            self.take_while(char::is_whitespace);
            let (rest, at) = (self.rest(), self.at);
            if rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) if end >= 2 => {
                        self.take(end + 2);
                    }
                    // The `*` of `/*/` does not end the comment.
                    Some(_) if rest.get(3..).is_some_and(|rest| rest.contains("*/")) => {
                        let end = rest.get(3..).and_then(|rest| rest.find("*/"));
                        self.take(end.unwrap_or(0) + 5);
                    }
                    _ => {
                        self.take(rest.len());
                        let kind = TokenKind::Odd("a comment that does not end");
                        return Some(Token { at, kind });
                    }
                }
            } else {
                return None;
            }
        }
    }

    /// Takes a number as written, including the sign of an exponent (`1e-7`).
    fn number(&mut self) -> &'t str {
        let start = self.at;
        let in_number = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let written = self.take_while(in_number);
        let is_decimal = |c: char| c.is_ascii_digit() || c == '.';
        let mantissa = written.strip_suffix(['e', 'E']);
        let has_exponent = self.rest().strip_prefix(['+', '-']);
        let has_exponent =
            has_exponent.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if mantissa.is_some_and(|mantissa| mantissa.chars().all(is_decimal)) && has_exponent {
            self.take(1);
            self.take_while(in_number);
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Takes a quoted string; a backslash escapes the next character. `None` if it does not end.
    fn quoted(&mut self, quote: u8) -> Option<&'t str> {
        self.take(1);
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while let Some(&byte) = bytes.get(end) {
            match byte {
                b'\\' => end += 2,
                byte if byte == quote => {
                    let inner = self.take(end);
                    self.take(1);
                    return Some(inner);
                }
                _ => end += 1,
            }
        }
        self.at = self.text.len();
        None
    }

    /// Takes a directive, which a backslash at the end of a line continues.
    fn directive(&mut self) -> &'t str {
        self.take(1);
        let rest = self.rest();
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if !line.trim_end().ends_with('\\') {
                break;
            }
        }
        self.take(end)
    }

    fn mark(&mut self) -> TokenKind<'t> {
        let rest = self.rest();
        if let Some(long) = LONG.iter().find(|long| rest.starts_with(**long)) {
            return TokenKind::Mark(self.take(long.len()));
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let mark = self.take(first);
        if mark.bytes().all(|byte| byte.is_ascii_punctuation()) {
            TokenKind::Mark(mark)
        } else {
            TokenKind::Odd("a character that has no meaning here")
        }
    }
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        if let Some(odd) = self.skip() {
            return Some(odd);
        }
        let at = self.at;
        let mut bytes = self.rest().bytes();
        let first = bytes.next()?;
        let second = bytes.next();
        let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let kind = match first {
            b'"' => self.quoted(b'"').map_or(
                TokenKind::Odd("a string that does not end"),
                TokenKind::String,
            ),
            b'\'' => self.quoted(b'\'').map_or(
                TokenKind::Odd("a character that does not end"),
                TokenKind::Char,
            ),
            b'0'..=b'9' => TokenKind::Number(self.number()),
            b'#' if self.hash == Hash::Directive => TokenKind::Directive(self.directive()),
            b'$' | b'@' if second.is_some_and(|second| in_name(second.into())) => {
                let start = self.at;
                self.take(1);
                self.take_while(in_name);
                TokenKind::Name(self.text.get(start..self.at).unwrap_or(""))
            }
            first if in_name(first.into()) => TokenKind::Name(self.take_while(in_name)),
            _ => self.mark(),
        };
        Some(Token { at, kind })
    }
}

/// Why an escape in a quoted string has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum EscapeFault {
    /// Nothing follows the backslash.
    #[error("a backslash at the end of the string")]
    Nothing,
    /// `\x` without two digits.
    #[error("\\x needs two hexadecimal digits")]
    Hexadecimal,
    /// This character follows the backslash.
    #[error("unknown escape \\{0}: expected \\n, \\t, \\r, \\0, \\xNN, \\\", \\' or \\\\")]
    Unknown(char),
}

/// An escape that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EscapeError {
    /// Offset of the backslash in the string between the quotes, bytes.
    pub(crate) at: usize,
    pub(crate) fault: EscapeFault,
}

/// Decodes C's escapes in a quoted string, given without its quotes.
pub(crate) fn unquote(written: &str) -> Result<Vec<u8>, EscapeError> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let at = written.len() - rest.len();
        let wrong = |fault| EscapeError { at, fault };
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some((&escaped, after)) = rest.split_first() else {
            return Err(wrong(EscapeFault::Nothing));
        };
        rest = after;
        out.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'0' => 0,
            b'x' => {
                let digits = rest
                    .get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok());
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                rest = rest.get(2..).unwrap_or_default();
                byte.ok_or(wrong(EscapeFault::Hexadecimal))?
            }
            b'"' | b'\'' | b'\\' => escaped,
            _ => return Err(wrong(EscapeFault::Unknown(escaped.into()))),
        });
    }
    Ok(out)
}

/// Parses an integer as C writes it: decimal, `0x…`, or octal if it begins with 0, with `_` between digits and the suffixes `u` and `l`.
pub(crate) fn integer(written: &str) -> Option<u64> {
    let plain = written.replace('_', "").to_ascii_lowercase();
    let digits = plain.trim_end_matches(['u', 'l']);
    let (digits, radix) = match (digits.strip_prefix("0x"), digits.strip_prefix('0')) {
        (Some(hexadecimal), _) => (hexadecimal, 16),
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, hash: Hash) -> Vec<TokenKind<'_>> {
        Lexer::new(text, hash).map(|token| token.kind).collect()
    }

    #[test]
    fn words_of_c() {
        use TokenKind::{Char, Mark, Name, Number, String};
        let text = "a__b /* x */ $arg1>=0x1f // y\n \"q\\\"\" 'c' @cast(&&)/*/ */1.5";
        let expected = [
            Name("a__b"),
            Name("$arg1"),
            Mark(">="),
            Number("0x1f"),
            String("q\\\""),
            Char("c"),
            Name("@cast"),
            Mark("("),
            Mark("&&"),
            Mark(")"),
            Number("1.5"),
        ];
        assert_eq!(kinds(text, Hash::Odd), expected);
    }

    #[test]
    fn a_hash_means_what_the_language_says() {
        let directive = TokenKind::Directive("define a \\\n b\n");
        let both = [directive, TokenKind::Name("c")];
        assert_eq!(kinds("#define a \\\n b\nc", Hash::Directive), both);
    }

    #[test]
    fn every_beginning_of_a_text_has_an_end() {
        let text = "a \"b\\\" ö\" /* ü */ 'c' #d\n %{ ...→ 1u";
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            for hash in [Hash::Directive, Hash::Odd] {
                let tokens: Vec<_> = Lexer::new(&text[..end], hash).collect();
                assert!(tokens.len() <= end);
                assert!(tokens.is_sorted_by_key(|token| token.at));
            }
        }
    }

    #[test]
    fn escapes_and_numbers() {
        assert_eq!(unquote(r#"a\n\x41\\\""#).unwrap(), b"a\nA\\\"");
        for (wrong, at, fault) in [
            ("ab\\", 2, EscapeFault::Nothing),
            ("\\n\\q", 2, EscapeFault::Unknown('q')),
            ("\\x4", 0, EscapeFault::Hexadecimal),
            ("a\\xzz", 1, EscapeFault::Hexadecimal),
        ] {
            assert_eq!(unquote(wrong), Err(EscapeError { at, fault }), "{wrong}");
        }
        assert_eq!(integer("0xffff_fffful"), Some(0xffff_ffff));
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer("18446744073709551616"), None);
        assert_eq!(integer("0644"), Some(420));
        assert_eq!(["0", "00", "0ul"].map(integer), [Some(0); 3]);
        assert_eq!(["08", "0190"].map(integer), [None; 2]);
    }
}

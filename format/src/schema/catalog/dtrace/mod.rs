//! DTrace provider files (`.d`), the input of `dtrace -h` and `dtrace -G`.
//!
//! ```text
//! #define Oid unsigned int
//! typedef struct conn conn_t;
//! enum reason { CLOSED = 1, TIMEOUT };
//! provider app {
//!     probe request__start(conn_t *conn, const char *url, int);
//!     probe request__done(conn_t *c) : (conninfo_t *c, string url);
//! };
//! ```
//!
//! Used are provider and probe names, the name and type of each parameter, and enumerators as words for the
//! numbers of a parameter of their type; an enum of which a value is no constant has none. A `char *` and D's `string` are strings; another pointer is an address; `long`
//! and `size_t` have 8 bytes. Typedefs and `#define`s without parameters are expanded. Of two parameter lists, the first one is that of
//! the note. A string `key` followed by an integer `keylen` (`key_len`, `key_length`) has that length. Structures, translators, attributes and other declarations are skipped.

mod declaration;
mod types;

use std::collections::HashSet;

use self::declaration::{parameter, typedef};
use self::types::Types;
use crate::lexer::{Hash, Lexer, Token, TokenKind};
use crate::schema::catalog::probe::note_name;
use crate::schema::catalog::problem::Problems;
use crate::schema::{Argument, ArgumentType, Length, Parsed, ProbeSchema};

/// Parses a file. An error affects only its declaration.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let mut parser = Parser {
        tokens: Lexer::new(text, Hash::Directive).collect(),
        at: 0,
        types: Types::default(),
        missing: HashSet::new(),
        problems: Problems::new(text),
        probes: Vec::new(),
    };
    while let Some(token) = parser.next() {
        parser.outside(token);
    }
    if parser.probes.is_empty() {
        parser.problems.note(0, "there is no probe in it");
    }
    Parsed {
        probes: parser.probes,
        problems: parser.problems.finish(),
    }
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
    types: Types<'t>,
    /// Unknown types that were reported.
    missing: HashSet<String>,
    problems: Problems<'t>,
    probes: Vec<ProbeSchema>,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.tokens.get(self.at).copied();
        self.at += usize::from(token.is_some());
        token
    }

    fn peek(&self) -> Option<TokenKind<'t>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn takes(&mut self, mark: &str) -> bool {
        let is = self.peek() == Some(TokenKind::Mark(mark));
        self.at += usize::from(is);
        is
    }

    fn name(&mut self) -> Option<&'t str> {
        match self.peek() {
            Some(TokenKind::Name(name)) => {
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    /// Parses a declaration outside of providers.
    fn outside(&mut self, token: Token<'t>) {
        match token.kind {
            TokenKind::Name("provider") => self.provider(token.at),
            TokenKind::Name("typedef") => {
                let words = self.until_semicolon();
                typedef(&words, &mut self.types);
            }
            TokenKind::Name("enum") => {
                let words = self.until_semicolon();
                self.types.enumeration(&words);
            }
            TokenKind::Directive(line) => self.types.directive(line),
            TokenKind::Odd(what) => self.problems.error(token.at, what),
            TokenKind::Mark(";") => {}
            _ => {
                self.until_semicolon();
            }
        }
    }

    /// The tokens up to a semicolon outside of braces, or to a closing brace that no name follows.
    fn until_semicolon(&mut self) -> Vec<Token<'t>> {
        let start = self.at;
        let mut depth = 0_u32;
        while let Some(token) = self.next() {
            match token.kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => {
                    depth = depth.saturating_sub(1);
                    let goes_on = matches!(self.peek(), Some(TokenKind::Name(word)) if word != "provider" && word != "typedef")
                        || matches!(self.peek(), Some(TokenKind::Mark(";" | "*")));
                    if depth == 0 && !goes_on {
                        break;
                    }
                }
                TokenKind::Mark(";") if depth == 0 => break,
                // `provider` cannot occur in another declaration, so that declaration has no end.
                TokenKind::Name("provider") if matches!(self.tokens.get(self.at + 1), Some(next) if next.kind == TokenKind::Mark("{")) =>
                {
                    self.problems.error(
                        token.at,
                        "expected ; at the end of the declaration before the provider",
                    );
                    self.at -= 1;
                    break;
                }
                _ => {}
            }
        }
        self.tokens.get(start..self.at).unwrap_or_default().to_vec()
    }

    fn provider(&mut self, at: usize) {
        let Some(provider) = self.name() else {
            self.problems
                .error(at, "expected the provider's name after `provider`");
            return;
        };
        if !self.takes("{") {
            self.problems
                .error(at, format!("expected {{ after provider {provider}"));
            return;
        }
        while let Some(token) = self.next() {
            match token.kind {
                TokenKind::Name("probe") => self.probe(provider, token.at),
                TokenKind::Name("typedef") => {
                    let words = self.until_semicolon();
                    typedef(&words, &mut self.types);
                }
                TokenKind::Directive(line) => self.types.directive(line),
                TokenKind::Mark("}") => {
                    self.takes(";");
                    return;
                }
                TokenKind::Mark(";") => {}
                TokenKind::Odd(what) => self.problems.error(token.at, what),
                _ => {
                    self.problems
                        .error(token.at, "expected `probe` or the end of the provider");
                    self.skip_to_probe();
                }
            }
        }
        self.problems
            .error(at, format!("expected }} at the end of provider {provider}"));
    }

    /// Skips to the next probe or to the end of the provider.
    fn skip_to_probe(&mut self) {
        while let Some(kind) = self.peek() {
            match kind {
                TokenKind::Name("probe") | TokenKind::Mark("}") => return,
                TokenKind::Mark(";") => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn probe(&mut self, provider: &str, at: usize) {
        let Some(name) = self.probe_name() else {
            self.problems
                .error(at, "expected the probe's name after `probe`");
            self.skip_to_probe();
            return;
        };
        let mut probe = ProbeSchema {
            provider: provider.to_owned(),
            name: note_name(&name),
            ..ProbeSchema::default()
        };
        if self.takes("(") {
            let Some(list) = self.parameters() else {
                self.problems.error(
                    at,
                    format!("expected ) at the end of the parameters of probe {name}"),
                );
                self.skip_to_probe();
                return;
            };
            for (place, words) in list.iter().enumerate() {
                let argument = self.parameter(place, words);
                probe.arguments.push(argument);
            }
        }
        self.pair(&mut probe, at);
        // A second list, after a colon, has the translated arguments.
        self.skip_to_probe();
        probe.mend();
        self.probes.push(probe);
    }

    /// Uses a `keylen` after a string `key` as its length, because such strings are not NUL-terminated.
    fn pair(&mut self, probe: &mut ProbeSchema, at: usize) {
        let ends = ["len", "_len", "length", "_length"];
        for place in 1..probe.arguments.len() {
            let (before, after) = probe.arguments.split_at_mut(place);
            let (Some(text), Some(length)) = (before.last_mut(), after.first()) else {
                continue;
            };
            let end = length.name.strip_prefix(&text.name);
            let counts = matches!(length.kind, Some(ArgumentType::Integer { .. }))
                && end.is_some_and(|end| ends.contains(&end));
            if counts && text.kind == Some(ArgumentType::String(None)) {
                let by = Length::Argument(length.name.clone());
                text.kind = Some(ArgumentType::String(Some(by)));
                let (text, length) = (&text.name, &length.name);
                self.problems.note(
                    at,
                    format!(
                        "{}: the length of {text} is taken to be in {length}",
                        probe.name
                    ),
                );
            }
        }
    }

    /// A name, in which DTrace allows hyphens.
    fn probe_name(&mut self) -> Option<String> {
        let mut name = self.name()?.to_owned();
        while self.takes("-") {
            name.push('-');
            name.push_str(self.name()?);
        }
        Some(name)
    }

    /// The tokens of each parameter; `None` if the list does not end.
    fn parameters(&mut self) -> Option<Vec<Vec<Token<'t>>>> {
        let mut list = vec![Vec::new()];
        let mut depth = 0_u32;
        loop {
            let token = self.next()?;
            match token.kind {
                TokenKind::Mark(")") if depth == 0 => break,
                TokenKind::Mark(",") if depth == 0 => {
                    list.push(Vec::new());
                    continue;
                }
                TokenKind::Mark("(") => depth += 1,
                TokenKind::Mark(")") => depth -= 1,
                TokenKind::Mark(";" | "{" | "}") | TokenKind::Odd(_) => {
                    self.at -= 1;
                    return None;
                }
                _ => {}
            }
            if let Some(last) = list.last_mut() {
                last.push(token);
            }
        }
        let nothing = matches!(&list[..], [one] if one.is_empty() || matches!(&one[..], [only] if only.kind == TokenKind::Name("void")));
        Some(if nothing { Vec::new() } else { list })
    }

    fn parameter(&mut self, place: usize, words: &[Token<'t>]) -> Argument {
        let declared = parameter(words, &self.types);
        let news = declared
            .missing
            .is_none_or(|name| self.missing.insert(name));
        if let (Some(reason), Some(first), true) = (&declared.unknown, words.first(), news) {
            self.problems.note(first.at, reason);
        }
        let mut argument = declared.argument;
        if argument.name.is_empty() {
            argument.name = Argument::unnamed(place).name;
        }
        argument
    }
}

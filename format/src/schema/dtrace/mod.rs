//! DTrace provider files (`.d`), as `dtrace -h` and `dtrace -G` take them.
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
//! What is taken: provider and probe names, and of each parameter its name and type; enumerators as words for the
//! numbers of a parameter of their type. A `char *` and D's `string` are texts; another pointer is an address; `long`
//! and `size_t` have 8 bytes. Typedefs and plain `#define`s of the file are followed. Of two parameter lists, the first is what
//! the note has. A text `key` with an integer `keylen` (`key_len`, `key_length`) behind it has that many bytes. Structures, translators, attributes and whatever else stands outside are passed over.

mod declaration;
mod types;

use std::collections::HashSet;

use self::declaration::{parameter, typedef};
use self::types::Types;
use super::problem::Problems;
use super::{Argument, ArgumentType, Length, Parsed, ProbeSchema, note_name};
use crate::lexer::{Hash, Kind, Lexer, Token};

/// Reads a file's text. What is not understood costs no more than the declaration that it stands in.
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
    /// Unknown types that were told of.
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

    fn peek(&self) -> Option<Kind<'t>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn takes(&mut self, mark: &str) -> bool {
        let is = self.peek() == Some(Kind::Mark(mark));
        self.at += usize::from(is);
        is
    }

    fn name(&mut self) -> Option<&'t str> {
        match self.peek() {
            Some(Kind::Name(name)) => {
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    /// Something outside of a provider.
    fn outside(&mut self, token: Token<'t>) {
        match token.kind {
            Kind::Name("provider") => self.provider(token.at),
            Kind::Name("typedef") => {
                let words = self.until_semicolon();
                typedef(&words, &mut self.types);
            }
            Kind::Name("enum") => {
                let words = self.until_semicolon();
                self.types.enumeration(&words);
            }
            Kind::Directive(line) => self.types.directive(line),
            Kind::Odd(what) => self.problems.error(token.at, what),
            Kind::Mark(";") => {}
            _ => {
                self.until_semicolon();
            }
        }
    }

    /// The words up to a semicolon outside of braces, or to the end of a pair of braces that no name follows.
    fn until_semicolon(&mut self) -> Vec<Token<'t>> {
        let start = self.at;
        let mut depth = 0_u32;
        while let Some(token) = self.next() {
            match token.kind {
                Kind::Mark("{") => depth += 1,
                Kind::Mark("}") => {
                    depth = depth.saturating_sub(1);
                    let goes_on = matches!(self.peek(), Some(Kind::Name(word)) if word != "provider" && word != "typedef")
                        || matches!(self.peek(), Some(Kind::Mark(";" | "*")));
                    if depth == 0 && !goes_on {
                        break;
                    }
                }
                Kind::Mark(";") if depth == 0 => break,
                // A provider can stand in nothing else: what was before has no end.
                Kind::Name("provider") if matches!(self.tokens.get(self.at + 1), Some(next) if next.kind == Kind::Mark("{")) =>
                {
                    self.problems
                        .error(token.at, "the declaration before the provider does not end");
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
                .error(at, "expected the provider's name behind `provider`");
            return;
        };
        if !self.takes("{") {
            self.problems
                .error(at, format!("expected {{ behind provider {provider}"));
            return;
        }
        while let Some(token) = self.next() {
            match token.kind {
                Kind::Name("probe") => self.probe(provider, token.at),
                Kind::Name("typedef") => {
                    let words = self.until_semicolon();
                    typedef(&words, &mut self.types);
                }
                Kind::Directive(line) => self.types.directive(line),
                Kind::Mark("}") => {
                    self.takes(";");
                    return;
                }
                Kind::Mark(";") => {}
                Kind::Odd(what) => self.problems.error(token.at, what),
                _ => {
                    self.problems
                        .error(token.at, "expected `probe` or the end of the provider");
                    self.skip_to_probe();
                }
            }
        }
        self.problems
            .error(at, format!("provider {provider} does not end"));
    }

    /// Goes to where the next probe, or the end of the provider, can be told.
    fn skip_to_probe(&mut self) {
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Name("probe") | Kind::Mark("}") => return,
                Kind::Mark(";") => {
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
                .error(at, "expected the probe's name behind `probe`");
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
                self.problems
                    .error(at, format!("the parameters of probe {name} do not end"));
                self.skip_to_probe();
                return;
            };
            for (place, words) in list.iter().enumerate() {
                let argument = self.parameter(place, words);
                probe.arguments.push(argument);
            }
        }
        self.pair(&mut probe, at);
        // A second list, behind a colon, is what DTrace's translators make of the first.
        self.skip_to_probe();
        probe.mend();
        self.probes.push(probe);
    }

    /// Takes a `keylen` behind a text `key` for its length: such texts have no NUL at their end.
    fn pair(&mut self, probe: &mut ProbeSchema, at: usize) {
        let ends = ["len", "_len", "length", "_length"];
        for place in 1..probe.arguments.len() {
            let (before, behind) = probe.arguments.split_at_mut(place);
            let (Some(text), Some(length)) = (before.last_mut(), behind.first()) else {
                continue;
            };
            let end = length.name.strip_prefix(&text.name);
            let counts = matches!(length.kind, Some(ArgumentType::Integer { .. }))
                && end.is_some_and(|end| ends.contains(&end));
            if counts && text.kind == Some(ArgumentType::Text(None)) {
                let by = Length::Argument(length.name.clone());
                text.kind = Some(ArgumentType::Text(Some(by)));
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

    /// The words of each parameter; `None` if the list does not end.
    fn parameters(&mut self) -> Option<Vec<Vec<Token<'t>>>> {
        let mut list = vec![Vec::new()];
        let mut depth = 0_u32;
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::Mark(")") if depth == 0 => break,
                Kind::Mark(",") if depth == 0 => {
                    list.push(Vec::new());
                    continue;
                }
                Kind::Mark("(") => depth += 1,
                Kind::Mark(")") => depth -= 1,
                Kind::Mark(";" | "{" | "}") | Kind::Odd(_) => {
                    self.at -= 1;
                    return None;
                }
                _ => {}
            }
            if let Some(last) = list.last_mut() {
                last.push(token);
            }
        }
        let nothing = matches!(&list[..], [one] if one.is_empty() || matches!(&one[..], [only] if only.kind == Kind::Name("void")));
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

//! SystemTap tapsets (`.stp`).
//!
//! ```text
//! probe app.request = process("/usr/bin/app").provider("app").mark("request__start")
//! {
//!     id = $arg1
//!     url = user_string($arg2)
//!     body = user_string_n($arg3, $arg4)
//! }
//! ```
//!
//! Used are each mark of an alias or probe, and the assignments in its body that give an
//! argument a name, directly or through a function with a known type; of several bodies for a mark, the first that names the argument. Arguments that no assignment names, and those
//! after the last named one, are unknown ([`ProbeSchema::more`]). A mark without `.provider("…")` matches any provider of its
//! program. The provider is guessed, with a note: the first part of the alias (`app.request`: app), else the name of the
//! tapset's file for an alias or the program's file name for a probe, or the other one. A mark without any of these is omitted.

mod argument_index;
mod body;
mod points;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use self::argument_index::grow;
use self::body::Body;
use self::points::Point;
use crate::lexer::{Hash, Lexer, Token, TokenKind};
use crate::schema::catalog::problem::Problems;
use crate::schema::catalog::words::note_name;
use crate::schema::words::is_name;
use crate::schema::{Argument, Hints, Parsed, ProbeSchema};

/// Parses a file. An error affects only its statement.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    parse_with(text, &Hints::default())
}

/// As [`parse`], with additional information.
#[must_use]
pub fn parse_with(text: &str, hints: &Hints<'_>) -> Parsed {
    let mut problems = Problems::new(text);
    let mut tokens = Vec::new();
    for token in Lexer::new(text, Hash::Comment) {
        match token.kind {
            TokenKind::Odd(what) => problems.error(token.at, what),
            _ => tokens.push(token),
        }
    }
    let mut parser = Parser {
        tokens: &tokens,
        hints,
        problems,
        probes: Vec::new(),
        places: HashMap::new(),
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at = match token.kind {
            TokenKind::Name("probe") => parser.probe(at + 1),
            TokenKind::Mark("{" | "%{") => parser.block_end(at),
            _ => at + 1,
        };
    }
    if parser.probes.is_empty() {
        parser
            .problems
            .note(0, "there is no probe with a mark in it");
    }
    Parsed {
        probes: parser.probes,
        problems: parser.problems.finish(),
    }
}

struct Parser<'a, 't> {
    tokens: &'a [Token<'t>],
    hints: &'a Hints<'a>,
    problems: Problems<'t>,
    probes: Vec<ProbeSchema>,
    /// Index of each probe, by provider and name.
    places: HashMap<(String, String), usize>,
}

impl<'t> Parser<'_, 't> {
    fn kind(&self, at: usize) -> Option<TokenKind<'t>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn offset(&self, at: usize) -> usize {
        let token = self.tokens.get(at).or(self.tokens.last());
        token.map_or(0, |token| token.at)
    }

    /// The position after the block that begins at `at`. A block that does not end is an error, and ends with the text.
    fn block_end(&mut self, at: usize) -> usize {
        let (mut depth, mut in_c) = (0_u32, false);
        for (index, token) in self.tokens.iter().enumerate().skip(at) {
            match token.kind {
                TokenKind::Mark("%{") => in_c = true,
                TokenKind::Mark("%}") => in_c = false,
                // C macros may have unbalanced braces.
                _ if in_c => {}
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && !in_c {
                return index + 1;
            }
        }
        self.problems
            .error(self.offset(at), "the block that begins here does not end");
        self.tokens.len()
    }

    /// Parses a probe or alias after its first token. Returns the position after it.
    fn probe(&mut self, start: usize) -> usize {
        let end = (start..self.tokens.len()).find(|&at| {
            matches!(
                self.kind(at),
                Some(TokenKind::Mark("{") | TokenKind::Name("probe"))
            )
        });
        let Some(open) = end.filter(|&at| self.kind(at) == Some(TokenKind::Mark("{"))) else {
            self.problems
                .note(self.offset(start), "left out: no body in braces follows");
            return end.unwrap_or(self.tokens.len());
        };
        let head = self.tokens.get(start..open).unwrap_or_default();
        let (alias, points) = points::parse(head);
        let close = self.block_end(open);
        if !points.iter().any(|point| point.mark.is_some()) {
            self.problems.note(
                self.offset(start),
                "left out: it has no mark(\"…\") with a plain name",
            );
            return close;
        }
        let ended = matches!(self.kind(close - 1), Some(TokenKind::Mark("}")));
        let end = if ended { close - 1 } else { close };
        let inner = self.tokens.get(open + 1..end.max(open + 1));
        let body = Body::read(inner.unwrap_or_default(), &mut self.problems);
        for point in &points {
            self.point(point, alias.as_deref(), &body);
        }
        close
    }

    /// Guesses the provider of a mark that does not name it.
    fn guess(&self, point: &Point, alias: Option<&str>) -> Option<String> {
        let dotted = alias.and_then(|alias| alias.split_once('.'));
        if let Some((first, _)) = dotted {
            return Some(first.to_owned());
        }
        let file = self.hints.file.and_then(|file| file.split('.').next());
        let file = file.filter(|file| is_name(file)).map(str::to_owned);
        match alias {
            Some(_) => file.or_else(|| point.program()),
            None => point.program().or(file),
        }
    }

    /// Adds the probe of a probe point.
    fn point(&mut self, point: &Point, alias: Option<&str>, body: &Body) {
        let Some(mark) = &point.mark else {
            self.problems
                .note(point.at, "left out: no mark(\"…\") with a plain name");
            return;
        };
        let known = point.provider.as_deref().or(self.hints.provider);
        let provider = match known.map(str::to_owned) {
            Some(provider) => provider,
            None => {
                let Some(guessed) = self.guess(point, alias) else {
                    self.problems.no_provider(
                        point.at,
                        format!("{mark} is left out: nothing names its provider"),
                    );
                    return;
                };
                self.problems.note(
                    point.at,
                    format!("provider of {mark} is taken to be {guessed:?}: no .provider(\"…\")"),
                );
                guessed
            }
        };
        let name = note_name(mark);
        let at = match self.places.entry((provider.clone(), name.clone())) {
            Entry::Occupied(index) => *index.get(),
            Entry::Vacant(index) => {
                index.insert(self.probes.len());
                self.probes.push(ProbeSchema {
                    provider,
                    name,
                    more: true,
                    ..ProbeSchema::default()
                });
                self.probes.len() - 1
            }
        };
        if let Some(probe) = self.probes.get_mut(at) {
            add(&mut probe.arguments, body.arguments());
            probe.mend();
        }
    }
}

/// Adds names and types that are not known yet.
fn add(known: &mut Vec<Argument>, others: Vec<Argument>) {
    for (index, other) in others.into_iter().enumerate() {
        grow(known, index);
        let Some(argument) = known.get_mut(index) else {
            continue;
        };
        let unnamed = *argument == Argument::unnamed(index);
        if unnamed || argument.kind.is_none() && argument.name == other.name {
            *argument = other;
        }
    }
}

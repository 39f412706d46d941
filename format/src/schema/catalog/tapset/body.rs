//! The arguments in the body of a tapset probe.

use super::argument_index::{MAX_ARGUMENTS, grow, index_of};
use crate::lexer::{Token, TokenKind, integer};
use crate::schema::catalog::problem::Problems;
use crate::schema::{Argument, ArgumentType, Length};

/// The assignments of a body.
#[derive(Debug, Default)]
pub(super) struct Body {
    arguments: Vec<Argument>,
    /// Indices of each text and of the argument that is its length.
    lengths: Vec<(usize, usize)>,
}

/// An expression that names an argument.
enum Assigned {
    /// Index and type of the argument.
    Argument(usize, Option<ArgumentType>),
    /// Indices of a text and of its length.
    Sized(usize, usize),
}

impl Body {
    pub(super) fn read(words: &[Token<'_>], problems: &mut Problems<'_>) -> Self {
        let mut body = Self::default();
        for (at, token) in words.iter().enumerate() {
            let name = match (
                at.checked_sub(1).and_then(|before| words.get(before)),
                token.kind,
            ) {
                (Some(before), TokenKind::Mark("=")) => match before.kind {
                    TokenKind::Name(name) if crate::schema::words::is_name(name) => name,
                    _ => continue,
                },
                _ => continue,
            };
            let value = words.get(at + 1..).unwrap_or_default();
            match meaning(value) {
                Some(meaning) => body.add(name, meaning),
                None if says_argument(value) => problems.note(
                    token.at,
                    format!(
                        "{name} is left out: it is worked out, or of a function that is not known"
                    ),
                ),
                None => {}
            }
        }
        body
    }

    fn add(&mut self, name: &str, meaning: Assigned) {
        let (index, kind) = match meaning {
            Assigned::Argument(index, kind) => (index, kind),
            Assigned::Sized(index, length) => {
                grow(&mut self.arguments, length);
                self.lengths.push((index, length));
                (index, Some(ArgumentType::Text(None)))
            }
        };
        grow(&mut self.arguments, index);
        let Some(argument) = self.arguments.get_mut(index) else {
            return;
        };
        let unnamed = *argument == Argument::unnamed(index);
        // A second assignment is used only if the first one has no type.
        if unnamed || argument.kind.is_none() && kind.is_some() {
            name.clone_into(&mut argument.name);
            argument.kind = kind;
        }
    }

    /// The arguments, up to the last one with a name.
    pub(super) fn arguments(&self) -> Vec<Argument> {
        let mut arguments = self.arguments.clone();
        for &(text, length) in &self.lengths {
            let Some(name) = arguments.get(length).map(|length| length.name.clone()) else {
                continue;
            };
            if let Some(argument) = arguments.get_mut(text) {
                argument.kind = Some(ArgumentType::Text(Some(Length::Argument(name))));
            }
        }
        arguments
    }
}

/// Parses the expression at the start of the tokens; `None` if it does not name an argument.
fn meaning(words: &[Token<'_>]) -> Option<Assigned> {
    let kind = |at: usize| words.get(at).map(|token| token.kind);
    let TokenKind::Name(first) = kind(0)? else {
        return None;
    };
    if let Some(index) = index_of(first) {
        return ends(kind(1)).then_some(Assigned::Argument(index, None));
    }
    if kind(1) != Some(TokenKind::Mark("(")) {
        return None;
    }
    let close = words
        .iter()
        .take(64)
        .position(|token| token.kind == TokenKind::Mark(")"))?;
    if !ends(kind(close + 1)) {
        return None;
    }
    let (second, third, fourth) = (kind(2)?, kind(3), kind(4));
    if let (TokenKind::Number(number), true) = (second, close == 3) {
        let index = usize::try_from(integer(number)?).ok()?.checked_sub(1)?;
        return (index < MAX_ARGUMENTS)
            .then(|| numbered(first))
            .flatten()
            .map(|kind| Assigned::Argument(index, Some(kind)));
    }
    let TokenKind::Name(argument) = second else {
        return None;
    };
    let index = index_of(argument)?;
    match first {
        "user_string_n" | "user_string_n_quoted" | "user_string_n_warn" | "user_string_n2" => {
            match (third, fourth) {
                (Some(TokenKind::Mark(",")), Some(TokenKind::Name(length))) => {
                    Some(Assigned::Sized(index, index_of(length)?))
                }
                (Some(TokenKind::Mark(",")), Some(TokenKind::Number(length))) => {
                    let length = u32::try_from(integer(length)?).ok()?;
                    let kind = ArgumentType::Text(Some(Length::Fixed(length)));
                    Some(Assigned::Argument(index, Some(kind)))
                }
                _ => None,
            }
        }
        name if name.starts_with("user_string") && !name.contains("utf") => {
            Some(Assigned::Argument(index, Some(ArgumentType::Text(None))))
        }
        "@cast" => Some(Assigned::Argument(index, Some(ArgumentType::Pointer))),
        _ => None,
    }
}

/// The type of a function that returns an argument by number.
fn numbered(function: &str) -> Option<ArgumentType> {
    Some(match function {
        "int_arg" | "s32_arg" => ArgumentType::integer(4, true),
        "uint_arg" | "u32_arg" => ArgumentType::integer(4, false),
        "long_arg" | "longlong_arg" | "s64_arg" => ArgumentType::integer(8, true),
        "ulong_arg" | "ulonglong_arg" | "u64_arg" => ArgumentType::integer(8, false),
        "pointer_arg" => ArgumentType::Pointer,
        _ => return None,
    })
}

/// Whether an expression ends before this token, which is not an operator.
fn ends(next: Option<TokenKind<'_>>) -> bool {
    matches!(
        next,
        None | Some(TokenKind::Name(_) | TokenKind::Mark(";" | "}" | "{"))
    )
}

/// Whether the tokens up to the end of the statement mention an argument.
fn says_argument(words: &[Token<'_>]) -> bool {
    let statement = words
        .iter()
        .take(32)
        .take_while(|token| !matches!(token.kind, TokenKind::Mark(";" | "}" | "{" | "=")));
    let mut names = statement.filter_map(|token| match token.kind {
        TokenKind::Name(name) => Some(name),
        _ => None,
    });
    // A name that is followed by `=` begins the next statement, but an argument is never assigned to.
    names.any(|name| index_of(name).is_some())
}

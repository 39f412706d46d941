//! What a probe's body says of the arguments.

use super::places::{MOST_ARGUMENTS, grow, place_of};
use crate::lexer::{Kind, Token, integer};
use crate::schema::problem::Problems;
use crate::schema::{Argument, ArgumentType, Length};

/// What assignments say.
#[derive(Debug, Default)]
pub(super) struct Body {
    arguments: Vec<Argument>,
    /// Of each text with its length in another argument, the two places.
    lengths: Vec<(usize, usize)>,
}

/// What an expression says of an argument.
enum Meaning {
    /// Its place and type.
    Argument(usize, Option<ArgumentType>),
    /// The places of a text and of its length.
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
                (Some(before), Kind::Mark("=")) => match before.kind {
                    Kind::Name(name) if super::super::is_name(name) => name,
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

    fn add(&mut self, name: &str, meaning: Meaning) {
        let (place, kind) = match meaning {
            Meaning::Argument(place, kind) => (place, kind),
            Meaning::Sized(place, length) => {
                grow(&mut self.arguments, length);
                self.lengths.push((place, length));
                (place, Some(ArgumentType::Text(None)))
            }
        };
        grow(&mut self.arguments, place);
        let Some(argument) = self.arguments.get_mut(place) else {
            return;
        };
        let unnamed = *argument == Argument::unnamed(place);
        // A second assignment counts only if it knows the type, which the first does not.
        if unnamed || argument.kind.is_none() && kind.is_some() {
            name.clone_into(&mut argument.name);
            argument.kind = kind;
        }
    }

    /// The arguments, as far as one is named.
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

/// What the expression at the beginning of some words says, if it is one that names an argument.
fn meaning(words: &[Token<'_>]) -> Option<Meaning> {
    let kind = |at: usize| words.get(at).map(|token| token.kind);
    let Kind::Name(first) = kind(0)? else {
        return None;
    };
    if let Some(place) = place_of(first) {
        return ends(kind(1)).then_some(Meaning::Argument(place, None));
    }
    if kind(1) != Some(Kind::Mark("(")) {
        return None;
    }
    let close = words
        .iter()
        .take(64)
        .position(|token| token.kind == Kind::Mark(")"))?;
    if !ends(kind(close + 1)) {
        return None;
    }
    let (second, third, fourth) = (kind(2)?, kind(3), kind(4));
    if let (Kind::Number(number), true) = (second, close == 3) {
        let place = usize::try_from(integer(number)?).ok()?.checked_sub(1)?;
        return (place < MOST_ARGUMENTS)
            .then(|| numbered(first))
            .flatten()
            .map(|kind| Meaning::Argument(place, Some(kind)));
    }
    let Kind::Name(argument) = second else {
        return None;
    };
    let place = place_of(argument)?;
    match first {
        "user_string_n" | "user_string_n_quoted" | "user_string_n_warn" | "user_string_n2" => {
            match (third, fourth) {
                (Some(Kind::Mark(",")), Some(Kind::Name(length))) => {
                    Some(Meaning::Sized(place, place_of(length)?))
                }
                (Some(Kind::Mark(",")), Some(Kind::Number(length))) => {
                    let length = u32::try_from(integer(length)?).ok()?;
                    let kind = ArgumentType::Text(Some(Length::Fixed(length)));
                    Some(Meaning::Argument(place, Some(kind)))
                }
                _ => None,
            }
        }
        name if name.starts_with("user_string") && !name.contains("utf") => {
            Some(Meaning::Argument(place, Some(ArgumentType::Text(None))))
        }
        "@cast" => Some(Meaning::Argument(place, Some(ArgumentType::Pointer))),
        _ => None,
    }
}

/// The type of an argument that a function gives by its number.
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

/// Whether an expression ends before this word: no operator goes on with it.
fn ends(next: Option<Kind<'_>>) -> bool {
    matches!(
        next,
        None | Some(Kind::Name(_) | Kind::Mark(";" | "}" | "{"))
    )
}

/// Whether the words up to the end of the statement speak of an argument.
fn says_argument(words: &[Token<'_>]) -> bool {
    let statement = words
        .iter()
        .take(32)
        .take_while(|token| !matches!(token.kind, Kind::Mark(";" | "}" | "{" | "=")));
    let mut names = statement.filter_map(|token| match token.kind {
        Kind::Name(name) => Some(name),
        _ => None,
    });
    // A name that is followed by `=` begins the next statement, but an argument is never assigned to.
    names.any(|name| place_of(name).is_some())
}

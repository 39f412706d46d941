//! Parses C declarations such as `const char *url` to a name and a type.

use super::types::{TypeInfo, Types};
use crate::lexer::{Token, TokenKind};
use crate::schema::kind::is_name;
use crate::schema::{Argument, ArgumentType};

/// Maximum depth of nested macros.
const DEPTH: u32 = 8;

/// A parsed declaration.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// Name (empty if there is none) and type.
    pub(super) argument: Argument,
    /// Why the type is unknown.
    pub(super) unknown: Option<String>,
    /// Name of the type, if it is not declared.
    pub(super) missing: Option<String>,
}

/// The specifiers of a type.
#[derive(Debug, Default)]
struct Specifiers<'t> {
    unsigned: bool,
    signed: bool,
    long: u32,
    /// `int`, `char`, `short`, `float`, `double`, `void`.
    base: Option<&'t str>,
    /// A type name, and its type.
    named: Option<(&'t str, Option<TypeInfo>)>,
}

/// Parses the tokens of a parameter.
pub(super) fn parameter<'t>(words: &[Token<'t>], types: &Types<'t>) -> Declared {
    followed(words, types, DEPTH)
}

/// Adds the type of a `typedef …;`; `words` are the tokens after `typedef`.
pub(super) fn typedef<'t>(words: &[Token<'t>], types: &mut Types<'t>) {
    let words = match words.split_last() {
        Some((last, words)) if last.kind == TokenKind::Mark(";") => words,
        _ => words,
    };
    let name = words.iter().rev().find_map(|token| match token.kind {
        TokenKind::Name(name) => Some(name),
        _ => None,
    });
    let Some(name) = name else { return };
    if let [first, rest @ ..] = words
        && first.kind == TokenKind::Name("enum")
        && let Some(labels) = types.enumeration(rest)
    {
        let meaning = TypeInfo {
            kind: Some(ArgumentType::integer(4, true)),
            unit: None,
            labels: Some(labels),
        };
        types.add(name, meaning);
        return;
    }
    if words.iter().any(|token| token.kind == TokenKind::Mark("{")) {
        return;
    }
    let declared = parameter(words, types);
    if declared.argument.name == name && declared.unknown.is_none() {
        types.add(name, declared.argument.into());
    }
}

/// The type of a type name, expanding at most `depth` nested macros.
fn meaning(name: &str, types: &Types<'_>, depth: u32) -> Option<TypeInfo> {
    if let (Some(words), Some(depth)) = (types.macro_words(name), depth.checked_sub(1)) {
        return Some(followed(&words, types, depth).argument.into());
    }
    types.named(name)
}

/// As [`parameter`], expanding at most `depth` nested macros.
fn followed<'t>(words: &[Token<'_>], types: &Types<'t>, depth: u32) -> Declared {
    let mut specifiers = Specifiers::default();
    let mut pointers = 0_u32;
    let mut function = false;
    let mut name = "";
    let mut words = words.iter().map(|token| token.kind).peekable();
    while let Some(word) = words.next() {
        match word {
            TokenKind::Mark("*" | "[") => pointers += 1,
            // The second pair of brackets of `void (*name)(int)` is ignored.
            TokenKind::Mark("(") if function => break,
            TokenKind::Mark("(") => function = true,
            TokenKind::Mark(_) | TokenKind::Number(_) => {}
            TokenKind::Name("const" | "volatile" | "restrict" | "register" | "extern") => {}
            TokenKind::Name("unsigned") => specifiers.unsigned = true,
            TokenKind::Name("signed") => specifiers.signed = true,
            TokenKind::Name("long") => specifiers.long += 1,
            TokenKind::Name(base @ ("int" | "char" | "short" | "float" | "double" | "void")) => {
                specifiers.set_base(base);
            }
            TokenKind::Name(tag @ ("struct" | "union" | "enum")) => {
                if let Some(TokenKind::Name(tagged)) = words.peek().copied() {
                    words.next();
                    specifiers.named = Some((tagged, tagged_type(tag, tagged, types)));
                }
            }
            TokenKind::Name(word) if specifiers.is_empty() => {
                specifiers.named = Some((word, meaning(word, types, depth)));
            }
            TokenKind::Name(word) if name.is_empty() && is_name(word) => name = word,
            _ => {}
        }
    }
    specifiers.declared(name, pointers + u32::from(function))
}

impl From<Argument> for TypeInfo {
    fn from(argument: Argument) -> Self {
        Self {
            kind: argument.kind,
            unit: argument.unit,
            labels: argument.labels,
        }
    }
}

fn tagged_type(tag: &str, name: &str, types: &Types<'_>) -> Option<TypeInfo> {
    (tag == "enum").then(|| TypeInfo {
        kind: Some(ArgumentType::integer(4, true)),
        unit: None,
        labels: types.enum_named(name).cloned(),
    })
}

impl<'t> Specifiers<'t> {
    const fn is_empty(&self) -> bool {
        !self.unsigned
            && !self.signed
            && self.long == 0
            && self.base.is_none()
            && self.named.is_none()
    }

    fn set_base(&mut self, base: &'t str) {
        // `short int` is `short`.
        if base != "int" || self.base.is_none() {
            self.base = Some(base);
        }
    }

    fn declared(self, name: &str, pointers: u32) -> Declared {
        let named_kind = self
            .named
            .as_ref()
            .and_then(|(_, meaning)| meaning.as_ref()?.kind.clone());
        let is_char = self.base == Some("char") || named_kind == Some(ArgumentType::Char);
        let mut argument = Argument::named(name);
        if pointers > 0 {
            argument.kind = Some(if pointers == 1 && is_char && !self.unsigned {
                ArgumentType::String(None)
            } else {
                ArgumentType::Pointer
            });
            return Declared {
                argument,
                ..Declared::default()
            };
        }
        match self.named {
            Some((_, Some(meaning))) => {
                argument.kind = meaning.kind;
                argument.unit = meaning.unit;
                argument.labels = meaning.labels;
            }
            Some((unknown, None)) => {
                let words = format!(
                    "unknown type {unknown:?}: arguments of it are taken as the note has them"
                );
                return Declared {
                    argument,
                    unknown: Some(words),
                    missing: Some(unknown.to_owned()),
                };
            }
            None => argument.kind = self.plain(),
        }
        let unknown = argument
            .kind
            .is_none()
            .then(|| "no type that we know: the argument is taken as the note has it".to_owned());
        Declared {
            argument,
            unknown,
            missing: None,
        }
    }

    fn plain(&self) -> Option<ArgumentType> {
        let signed = !self.unsigned;
        Some(match (self.base, self.long) {
            (Some("char"), _) if self.unsigned || self.signed => ArgumentType::integer(1, signed),
            (Some("char"), _) => ArgumentType::Char,
            (Some("short"), _) => ArgumentType::integer(2, signed),
            (Some("float"), _) => ArgumentType::Float32,
            (Some("double"), 0) => ArgumentType::Float64,
            (Some("double" | "void"), _) => return None,
            (_, 1..) => ArgumentType::integer(8, signed),
            (Some("int"), _) => ArgumentType::integer(4, signed),
            (None, 0) if self.unsigned || self.signed => ArgumentType::integer(4, signed),
            _ => return None,
        })
    }
}

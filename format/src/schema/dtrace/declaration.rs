//! Declarations of C: from `const char *url` to a name and a type.

use super::types::{Meaning, Types};
use crate::lexer::{Kind, Token};
use crate::schema::{Argument, ArgumentType, is_name};

/// Most macros that are followed from one to the next.
const DEPTH: u32 = 8;

/// What a declaration says.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The name, empty if there is none, and the type.
    pub(super) argument: Argument,
    /// Why there is no type.
    pub(super) unknown: Option<String>,
    /// The type's name, where it is that which is not known.
    pub(super) missing: Option<String>,
}

/// Words that a type may be made of.
#[derive(Debug, Default)]
struct Specifiers<'t> {
    unsigned: bool,
    signed: bool,
    long: u32,
    /// `int`, `char`, `short`, `float`, `double`, `void`.
    base: Option<&'t str>,
    /// A type's name, with what it means.
    named: Option<(&'t str, Option<Meaning>)>,
}

/// What the words of a parameter say.
pub(super) fn parameter<'t>(words: &[Token<'t>], types: &Types<'t>) -> Declared {
    followed(words, types, DEPTH)
}

/// Adds the type that a `typedef …;` names, of which `words` are all but the first.
pub(super) fn typedef<'t>(words: &[Token<'t>], types: &mut Types<'t>) {
    let words = match words.split_last() {
        Some((last, words)) if last.kind == Kind::Mark(";") => words,
        _ => words,
    };
    let name = words.iter().rev().find_map(|token| match token.kind {
        Kind::Name(name) => Some(name),
        _ => None,
    });
    let Some(name) = name else { return };
    if let [first, rest @ ..] = words
        && first.kind == Kind::Name("enum")
        && let Some(labels) = types.enumeration(rest)
    {
        let meaning = Meaning {
            kind: Some(ArgumentType::integer(4, true)),
            unit: None,
            labels: Some(labels),
        };
        types.add(name, meaning);
        return;
    }
    if words.iter().any(|token| token.kind == Kind::Mark("{")) {
        return;
    }
    let declared = parameter(words, types);
    if declared.argument.name == name && declared.unknown.is_none() {
        types.add(name, declared.argument.into());
    }
}

/// The meaning of a type's name, following no more than `depth` macros.
fn meaning(name: &str, types: &Types<'_>, depth: u32) -> Option<Meaning> {
    if let (Some(words), Some(depth)) = (types.macro_words(name), depth.checked_sub(1)) {
        return Some(followed(&words, types, depth).argument.into());
    }
    types.named(name)
}

/// As [`parameter`], following no more than `depth` macros.
fn followed<'t>(words: &[Token<'_>], types: &Types<'t>, depth: u32) -> Declared {
    let mut specifiers = Specifiers::default();
    let mut pointers = 0_u32;
    let mut function = false;
    let mut name = "";
    let mut words = words.iter().map(|token| token.kind).peekable();
    while let Some(word) = words.next() {
        match word {
            Kind::Mark("*" | "[") => pointers += 1,
            // Of `void (*name)(int)`, the second pair of brackets holds what does not matter.
            Kind::Mark("(") if function => break,
            Kind::Mark("(") => function = true,
            Kind::Mark(_) | Kind::Number(_) => {}
            Kind::Name("const" | "volatile" | "restrict" | "register" | "extern") => {}
            Kind::Name("unsigned") => specifiers.unsigned = true,
            Kind::Name("signed") => specifiers.signed = true,
            Kind::Name("long") => specifiers.long += 1,
            Kind::Name(base @ ("int" | "char" | "short" | "float" | "double" | "void")) => {
                specifiers.set_base(base);
            }
            Kind::Name(tag @ ("struct" | "union" | "enum")) => {
                if let Some(Kind::Name(tagged)) = words.peek().copied() {
                    words.next();
                    specifiers.named = Some((tagged, tagged_type(tag, tagged, types)));
                }
            }
            Kind::Name(word) if specifiers.is_empty() => {
                specifiers.named = Some((word, meaning(word, types, depth)));
            }
            Kind::Name(word) if name.is_empty() && is_name(word) => name = word,
            _ => {}
        }
    }
    specifiers.declared(name, pointers + u32::from(function))
}

impl From<Argument> for Meaning {
    fn from(argument: Argument) -> Self {
        Self {
            kind: argument.kind,
            unit: argument.unit,
            labels: argument.labels,
        }
    }
}

fn tagged_type(tag: &str, name: &str, types: &Types<'_>) -> Option<Meaning> {
    (tag == "enum").then(|| Meaning {
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
        // Of `short int`, the short counts.
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
                ArgumentType::Text(None)
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

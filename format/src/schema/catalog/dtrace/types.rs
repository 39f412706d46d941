//! Types declared in a file, and types of C and D.

use std::collections::{BTreeMap, HashMap};

use crate::expr::{Datum, Expr, Name};
use crate::lexer::{Hash, Lexer, Token, TokenKind};
use crate::schema::{ArgumentType, Labels, Unit};

/// A type, with unit and words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypeInfo {
    pub(super) kind: Option<ArgumentType>,
    pub(super) unit: Option<Unit>,
    pub(super) labels: Option<Labels>,
}

/// The types of a file.
#[derive(Debug, Default)]
pub(super) struct Types<'t> {
    typedefs: HashMap<&'t str, TypeInfo>,
    enums: HashMap<&'t str, Labels>,
    /// Texts of macros without parameters, by name.
    macros: HashMap<&'t str, &'t str>,
}

/// Maximum number of tokens of a macro that are read.
const MACRO_WORDS: usize = 16;

impl<'t> Types<'t> {
    /// The type of a type name that is not a macro.
    pub(super) fn named(&self, name: &str) -> Option<TypeInfo> {
        let declared = self.typedefs.get(name).filter(|_| !is_fixed(name));
        declared.cloned().or_else(|| known(name))
    }

    /// The first [`MACRO_WORDS`] tokens of a macro without parameters; `None` for a type name.
    pub(super) fn macro_words(&self, name: &str) -> Option<Vec<Token<'t>>> {
        if is_fixed(name) || self.typedefs.contains_key(name) {
            return None;
        }
        let text = self.macros.get(name)?;
        Some(Lexer::new(text, Hash::Odd).take(MACRO_WORDS).collect())
    }

    /// Adds a type's name.
    pub(super) fn add(&mut self, name: &'t str, meaning: TypeInfo) {
        self.typedefs.insert(name, meaning);
    }

    /// The words of an enum, by its name.
    pub(super) fn enum_named(&self, name: &str) -> Option<&Labels> {
        self.enums.get(name)
    }

    /// Parses the tokens after `enum`. Returns the enumerators, if they follow.
    pub(super) fn enumeration(&mut self, words: &[Token<'t>]) -> Option<Labels> {
        let open = words
            .iter()
            .position(|token| token.kind == TokenKind::Mark("{"))?;
        let labels = Labels::Enum(enumerators(words.get(open + 1..)?)?.into());
        if let [first, ..] = words
            && let TokenKind::Name(name) = first.kind
        {
            self.enums.insert(name, labels.clone());
        }
        Some(labels)
    }

    /// Reads a preprocessor directive.
    pub(super) fn directive(&mut self, line: &'t str) {
        let Some(rest) = line.trim_start().strip_prefix("define") else {
            return;
        };
        let rest = rest.trim();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, text) = rest.split_at(end.unwrap_or(rest.len()));
        if !name.is_empty() && text.starts_with(char::is_whitespace) {
            self.macros.insert(name, text);
        }
    }
}

/// Parses `A, B = 1 << 4, C = A | B }`; `None` if a value is not a constant, or if there is anything else: then it is not known which
/// numbers the enumerators after it have.
fn enumerators(words: &[Token<'_>]) -> Option<BTreeMap<i64, String>> {
    let mut labels = BTreeMap::new();
    let mut known = HashMap::new();
    let mut next = 0_i64;
    let mut words = words.iter().copied().peekable();
    loop {
        let name = match words.next()?.kind {
            TokenKind::Name(name) => name,
            TokenKind::Mark("}") => break,
            _ => return None,
        };
        if words.peek()?.kind == TokenKind::Mark("=") {
            words.next();
            let of_value = |token: &Token<'_>| !matches!(token.kind, TokenKind::Mark("," | "}"));
            let value = std::iter::from_fn(|| words.next_if(of_value)).collect();
            next = constant(value, &known)?;
        }
        labels.insert(next, name.to_owned());
        known.insert(name, next);
        next = next.wrapping_add(1);
        match words.next()?.kind {
            TokenKind::Mark(",") => {}
            TokenKind::Mark("}") => break,
            _ => return None,
        }
    }
    (!labels.is_empty()).then_some(labels)
}

/// The value of a constant expression, in which `known` are the enumerators before it.
fn constant(words: Vec<Token<'_>>, known: &HashMap<&str, i64>) -> Option<i64> {
    let expression = Expr::from_tokens(words).ok()?;
    let value = |name: &Name| {
        let number = known.get(&*name.text);
        number.map_or(Datum::Missing, |number| Datum::Integer((*number).into()))
    };
    match expression.evaluate(&value) {
        Datum::Integer(number) => i64::try_from(number).ok(),
        _ => None,
    }
}

/// Whether declarations of a type name are ignored: `#define bool char` is used because D has no bool, not because
/// the argument is a character.
fn is_fixed(name: &str) -> bool {
    matches!(name, "bool" | "_Bool" | "string")
}

/// Types of C and D with names of one word.
fn known(name: &str) -> Option<TypeInfo> {
    let integer = |bytes, signed| Some(ArgumentType::integer(bytes, signed));
    let kind = match name {
        "int8_t" => integer(1, true),
        "uint8_t" | "uchar_t" | "u_char" | "guint8" | "uint8" => integer(1, false),
        "int16_t" => integer(2, true),
        "uint16_t" | "ushort_t" | "u_short" | "in_port_t" | "guint16" | "uint16" => {
            integer(2, false)
        }
        "int32_t" | "pid_t" | "id_t" | "gint" | "gint32" | "int32" => integer(4, true),
        "uint32_t" | "uint_t" | "u_int" | "uint" | "uid_t" | "gid_t" | "mode_t" | "guint"
        | "guint32" | "uint32" => integer(4, false),
        "int64_t" | "ssize_t" | "off_t" | "off64_t" | "time_t" | "intptr_t" | "ptrdiff_t"
        | "longlong_t" | "gint64" | "int64" => integer(8, true),
        "uint64_t" | "size_t" | "ulong_t" | "u_long" | "u_longlong_t" | "gsize" | "gulong"
        | "guint64" | "dev_t" | "ino_t" | "uint64" => integer(8, false),
        "hrtime_t" => {
            return Some(TypeInfo {
                kind: integer(8, true),
                unit: Some(Unit::Nanoseconds),
                labels: None,
            });
        }
        "uintptr_t" | "caddr_t" | "gpointer" => Some(ArgumentType::Pointer),
        "bool" | "_Bool" | "boolean_t" | "gboolean" => Some(ArgumentType::Bool),
        "string" => Some(ArgumentType::String(None)),
        _ => None,
    };
    kind.map(|kind| TypeInfo {
        kind: Some(kind),
        ..TypeInfo::default()
    })
}

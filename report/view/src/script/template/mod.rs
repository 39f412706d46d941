//! `--format` with braces: a template for each line.
//!
//! ```text
//! {comm} {url:?} {time:.3} {pid:>6} {args}
//! ```
//!
//! | in braces | |
//! |---|---|
//! | perf's fields | `comm`, `tid`, `pid`, `cpu`, `tod`, `time`, `period`, `event`, `ip`, `sym`, `symoff`, `dso` |
//! | `reltime`, `deltatime` | seconds since the first line, since the line before |
//! | `args` | all arguments as `NAME=VALUE` |
//! | a name, `arg1`, … | an argument; `args.NAME` where a field has the same name |
//!
//! What follows a colon is described at [`Spec`]. `{{` and `}}` are braces, `\n`, `\t` and `\\` what they are everywhere.

pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod spec;
pub(crate) mod style;

use std::str::FromStr;

use usdtrec_trace::fields::{Field, FieldValues};

use crate::script::template::error::{SpecPart, TemplateError, TemplateErrorKind};
use crate::script::template::spec::{Conversion, Spec};
use crate::script::times::TimeOrigin;

/// A template for lines, as described above; from a string by [`FromStr`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Literal(String),
    Value(Meaning, Spec),
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Field(Field),
    /// A time counted from another line.
    Since(TimeOrigin),
    /// An argument of this name.
    Argument(String),
}

impl Meaning {
    fn from_name(name: &str) -> Self {
        match name {
            "reltime" => Self::Since(TimeOrigin::First),
            "deltatime" => Self::Since(TimeOrigin::Previous),
            // Spans are no part of templates, but an argument may be called so.
            name => match (
                Field::named(name).filter(|field| *field != Field::Span),
                name.strip_prefix("args."),
            ) {
                (Some(field), _) => Self::Field(field),
                (None, argument) => Self::Argument(argument.unwrap_or(name).to_owned()),
            },
        }
    }

    /// The part of a specification that is not for it. The type of an argument is not known before an event.
    fn refuses(&self, spec: Spec) -> Option<SpecPart> {
        let field = match self {
            Self::Argument(_) => return None,
            Self::Since(_) => Field::Time,
            Self::Field(field) => *field,
        };
        let values = field.spec().values;
        let is_time = matches!(values, FieldValues::Time(_));
        let is_number = match values {
            FieldValues::Process(field) => field.is_number,
            values => matches!(values, FieldValues::Number(_)),
        };
        let is_string = match values {
            FieldValues::Process(field) => !field.is_number,
            values => matches!(values, FieldValues::String(_)),
        };
        match spec {
            Spec {
                kind: Conversion::Quoted,
                ..
            } if !is_string => Some(SpecPart::Quoted),
            Spec {
                kind: Conversion::Hex,
                ..
            } if !is_number => Some(SpecPart::Hex),
            Spec { zeros: true, .. } if !is_number && field != Field::Time => Some(SpecPart::Zeros),
            Spec {
                precision: Some(10..),
                ..
            } if is_time => Some(SpecPart::DigitsOfTime),
            Spec {
                precision: Some(_), ..
            } if !is_time && !is_string => Some(SpecPart::Precision),
            _ => None,
        }
    }
}

impl Template {
    /// Its parts.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Whether lines show the event's time, which may be counted from another line.
    #[must_use]
    pub fn shows_time(&self) -> bool {
        let is_time = |item: &Item| matches!(item, Item::Value(Meaning::Field(Field::Time), _));
        self.items.iter().any(is_time)
    }
}

impl Template {
    /// Whether lines show all arguments.
    #[must_use]
    pub fn shows_all_arguments(&self) -> bool {
        let is_all = |item: &Item| matches!(item, Item::Value(Meaning::Field(Field::Args), _));
        self.items.iter().any(is_all)
    }

    /// The names of the arguments that lines show.
    pub fn arguments(&self) -> impl Iterator<Item = &str> + Clone {
        self.items.iter().filter_map(|item| match item {
            Item::Value(Meaning::Argument(name), _) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut items = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let rest = chars.as_str();
            let wrong = |kind| TemplateError {
                mark: c,
                position: text.chars().count() - rest.chars().count(),
                kind,
            };
            match c {
                '{' | '}' if rest.starts_with(c) => {
                    literal.push(c);
                    chars.next();
                }
                '{' => {
                    let (inner, after) = rest
                        .split_once('}')
                        .ok_or_else(|| wrong(TemplateErrorKind::NotClosed))?;
                    if !literal.is_empty() {
                        items.push(Item::Literal(std::mem::take(&mut literal)));
                    }
                    items.push(value(inner).map_err(wrong)?);
                    chars = after.chars();
                }
                '}' => return Err(wrong(TemplateErrorKind::NotOpened)),
                '\\' => literal.push(match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('\\') => '\\',
                    _ => return Err(wrong(TemplateErrorKind::Escape)),
                }),
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            items.push(Item::Literal(literal));
        }
        Ok(Self { items })
    }
}

/// The value that the text between braces stands for.
fn value(inner: &str) -> Result<Item, TemplateErrorKind> {
    let (name, spec) = inner.split_once(':').unwrap_or((inner, ""));
    let name = name.trim();
    if name.is_empty() || name == "args." {
        return Err(TemplateErrorKind::NoName);
    }
    let spec = Spec::parse(spec)?;
    let meaning = Meaning::from_name(name);
    match meaning.refuses(spec) {
        Some(part) => Err(TemplateErrorKind::NotOfField {
            field: name.to_owned(),
            part,
        }),
        None => Ok(Item::Value(meaning, spec)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<Item> {
        text.parse::<Template>().unwrap().items
    }

    #[test]
    fn literals_and_values_follow_each_other() {
        let argument = |name: &str| Meaning::Argument(name.to_owned());
        let plain = Spec::default();
        assert_eq!(
            items(r"é{comm}{url:?}\t{{{args.pid}}}\\{reltime}"),
            [
                Item::Literal("é".to_owned()),
                Item::Value(Meaning::Field(Field::Comm), plain),
                Item::Value(
                    argument("url"),
                    Spec {
                        kind: Conversion::Quoted,
                        ..plain
                    }
                ),
                Item::Literal("\t{".to_owned()),
                Item::Value(argument("pid"), plain),
                Item::Literal("}\\".to_owned()),
                Item::Value(Meaning::Since(TimeOrigin::First), plain),
            ]
        );
        assert_eq!(items("{{}}"), [Item::Literal("{}".to_owned())]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            ("{comm", "{ at character 1: there is no }"),
            ("a}", "} at character 2: there is no {"),
            ("{}", "a name is missing"),
            ("{args.}", "a name is missing"),
            (r"{pid}\x", "\\ at character 6"),
            ("{pid:?}", "pid: ? is for strings"),
            ("{comm:x}", "comm: x is for numbers"),
            ("{time:.10}", "up to nine digits"),
            ("{cpu:.2}", "times, floats and strings"),
            ("{tod:030}", "zeros are for numbers"),
            ("{pid:s}", "\"s\" is not understood"),
        ] {
            let error = text.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}

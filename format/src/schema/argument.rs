//! The description of an argument: name, type, unit, words for numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ArgumentType, Unit};

/// The schema of an argument.
///
/// In a trace's definitions it is a JSON string if only the name is known, else an object with the
/// members `name`, `type`, `unit`, `enum` or `flags` (objects from number to word) and `description`. A type that a
/// reader does not know is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Name; `arg1`, … if unknown.
    pub name: String,
    /// Type; `None` if unknown, and then the note's size and sign are used.
    pub kind: Option<ArgumentType>,
    /// Unit of the number.
    pub unit: Option<Unit>,
    /// Words of an enumeration or of flags.
    pub labels: Option<Labels>,
    /// Description, in one line.
    pub description: Option<String>,
    /// Expression over the probe's arguments that is captured instead of the argument, if the engine can read memory
    /// ([`expr`](crate::expr)), such as `str(*(type+8))`. Not stored in a trace's definitions.
    pub capture: Option<String>,
}

impl Argument {
    /// An argument without a name: `arg1` for the index 0, and so on.
    #[must_use]
    pub fn unnamed(index: usize) -> Self {
        Self::named(format!("arg{}", index.saturating_add(1)))
    }

    /// An argument of which only the name is known.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The index of the argument that a name in an expression means: by its name, as `args.NAME`, or as `arg1`, `arg2`, …; of a span around the hit, as
    /// `SPAN.NAME` or `SPAN.arg1`.
    #[must_use]
    pub fn place(arguments: &[Self], name: &str) -> Option<usize> {
        let named = |name: &str| arguments.iter().position(|known| known.name == name);
        let bare = name.strip_prefix("args.").unwrap_or(name);
        let numbered = || {
            let number: usize = bare.strip_prefix("arg")?.parse().ok()?;
            number
                .checked_sub(1)
                .filter(|place| *place < arguments.len())
        };
        named(name)
            .or_else(|| named(bare))
            .or_else(numbered)
            .or_else(|| Self::place_in_span(arguments, name))
    }

    /// The index of the argument that is called `SPAN.arg1`, `SPAN.arg2`, …. Those of a span follow each other, in their order.
    #[must_use]
    pub fn place_in_span(arguments: &[Self], name: &str) -> Option<usize> {
        let (span, number) = name.rsplit_once(".arg")?;
        let number: usize = number.parse().ok()?;
        let is_of_span = |known: &Self| {
            let rest = known.name.strip_prefix(span);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let mut of_span = (0..).zip(arguments).filter(|(_, known)| is_of_span(known));
        of_span.nth(number.checked_sub(1)?).map(|(place, _)| place)
    }

    /// Whether only the name is known.
    #[must_use]
    pub const fn is_bare(&self) -> bool {
        self.kind.is_none()
            && self.unit.is_none()
            && self.labels.is_none()
            && self.description.is_none()
            && self.capture.is_none()
    }

    /// The type in a signature: `str`, `enum`, `flags`, `u64 ns`, `ptr = str(*(x+8))`; `?` if unknown.
    #[must_use]
    pub fn type_words(&self) -> String {
        let kind = match (&self.labels, &self.kind) {
            (Some(Labels::Enum(_)), _) => "enum".to_owned(),
            (Some(Labels::Flags(_)), _) => "flags".to_owned(),
            (None, Some(kind)) => kind.to_string(),
            (None, None) => "?".to_owned(),
        };
        let kind = match &self.unit {
            Some(unit) => format!("{kind} {unit}"),
            None => kind,
        };
        match &self.capture {
            Some(capture) => format!("{kind} = {capture}"),
            None => kind,
        }
    }
}

/// The JSON form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Name(String),
    Object(Object),
}

#[derive(Serialize, Deserialize)]
struct Object {
    name: String,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(rename = "enum", default, skip_serializing_if = "Option::is_none")]
    words: Option<Written>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flags: Option<Written>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Words by number. Keys in JSON are strings.
type Written = BTreeMap<String, String>;

fn write(words: &Words) -> Written {
    let words = words.iter();
    words
        .map(|(number, word)| (number.to_string(), word.clone()))
        .collect()
}

/// Keys that are not numbers are ignored.
fn read(words: Written) -> Words {
    let words = words.into_iter();
    let words = words.filter_map(|(number, word)| Some((number.parse().ok()?, word)));
    std::sync::Arc::new(words.collect())
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_bare() {
            return serializer.serialize_str(&self.name);
        }
        let (words, flags) = match &self.labels {
            Some(Labels::Enum(words)) => (Some(write(words)), None),
            Some(Labels::Flags(flags)) => (None, Some(write(flags))),
            None => (None, None),
        };
        let object = Object {
            name: self.name.clone(),
            kind: self.kind.as_ref().map(ToString::to_string),
            unit: self.unit.as_ref().map(ToString::to_string),
            words,
            flags,
            description: self.description.clone(),
        };
        object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Name(name) => Self::named(name),
            Form::Object(object) => Self {
                name: object.name,
                kind: object.kind.and_then(|kind| kind.parse().ok()),
                unit: object.unit.as_deref().map(Unit::from_name),
                labels: match (object.words, object.flags) {
                    (Some(words), _) => Some(Labels::Enum(read(words))),
                    (None, flags) => flags.map(|flags| Labels::Flags(read(flags))),
                },
                description: object.description,
                capture: None,
            },
        })
    }
}

/// Words by number, shared between arguments.
pub type Words = Arc<BTreeMap<i64, String>>;

/// Words for an argument's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Each number has a word.
    Enum(Words),
    /// Each bit, or group of bits, has a word.
    Flags(Words),
}

impl Labels {
    /// The words by number, in ascending order.
    #[must_use]
    pub fn words(&self) -> &BTreeMap<i64, String> {
        match self {
            Self::Enum(words) | Self::Flags(words) => words,
        }
    }

    /// The number of a word.
    #[must_use]
    pub fn number(&self, word: &str) -> Option<i64> {
        let same = self.words().iter().find(|(_, known)| *known == word);
        same.map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_a_name_or_an_object_and_reads_back() {
        let full = Argument {
            name: "type".to_owned(),
            kind: Some(ArgumentType::integer(4, true)),
            unit: Some(Unit::Bytes),
            labels: Some(Labels::Flags(std::sync::Arc::new(
                [(1, "a".to_owned()), (-8, "b".to_owned())].into(),
            ))),
            description: Some("what".to_owned()),
            capture: None,
        };
        for (argument, json) in [
            (Argument::unnamed(0), r#""arg1""#),
            (
                full,
                r#"{"name":"type","type":"s32","unit":"bytes","flags":{"-8":"b","1":"a"},"description":"what"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&argument).unwrap(), json);
            assert_eq!(serde_json::from_str::<Argument>(json).unwrap(), argument);
        }
    }

    /// A field of a hit has no such prefix: `args.comm` is an argument only.
    #[test]
    fn names_of_expressions_are_those_of_arguments() {
        let arguments = ["a", "args.b", "b", "s.x", "s.arg2", "t.y"].map(Argument::named);
        for (name, place) in [
            ("a", Some(0)),
            ("args.a", Some(0)),
            ("args.b", Some(1)),
            ("b", Some(2)),
            ("arg2", Some(1)),
            ("args.arg3", Some(2)),
            ("arg7", None),
            ("s.arg1", Some(3)),
            ("s.arg2", Some(4)),
            ("s.arg3", None),
            ("s.arg0", None),
            ("t.arg1", Some(5)),
            ("u.arg1", None),
            ("arg0", None),
            ("args.comm", None),
        ] {
            assert_eq!(Argument::place(&arguments, name), place, "{name}");
        }
    }

    #[test]
    fn what_a_later_writer_added_is_passed_over() {
        let json = r#"{"name":"x","type":"u128","colour":{"a":[1]},"unit":"furlong"}"#;
        let argument: Argument = serde_json::from_str(json).unwrap();
        assert_eq!(argument.kind, None);
        assert_eq!(argument.type_words(), "? furlong");
    }
}

//! What is known of an argument.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

use super::{ArgumentType, Labels, Unit, Words};

/// What is known of an argument.
///
/// In a trace's definitions it is its name as a JSON string where nothing else is known, else an object with the
/// members `name`, `type`, `unit`, `enum` or `flags` (objects from number to word) and `description`. A type that a
/// reader does not know is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its name: `arg1`, … where none is known.
    pub name: String,
    /// Its type; `None` leaves it to the note.
    pub kind: Option<ArgumentType>,
    /// What it counts.
    pub unit: Option<Unit>,
    /// Words for its numbers.
    pub labels: Option<Labels>,
    /// What it is, in a line.
    pub description: Option<String>,
    /// What a recorder that can read memory captures in its place: an expression over the probe's arguments
    /// ([`expr`](crate::expr)), such as `str(*(type+8))`. A trace's definitions do not have it, but the arguments that were captured.
    pub capture: Option<String>,
}

impl Argument {
    /// An argument of which no more than its place is known, counted from 0: `arg1`, ….
    #[must_use]
    pub fn unnamed(place: usize) -> Self {
        Self::named(format!("arg{}", place.saturating_add(1)))
    }

    /// An argument of which no more than its name is known.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Whether no more than its name is known.
    #[must_use]
    pub const fn is_bare(&self) -> bool {
        self.kind.is_none()
            && self.unit.is_none()
            && self.labels.is_none()
            && self.description.is_none()
            && self.capture.is_none()
    }

    /// Its type as a signature shows it: `str`, `enum`, `flags`, `u64 ns`, `ptr = str(*(x+8))`; `?` where it is not known.
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

/// Words by their numbers, which are text where JSON needs a key.
type Written = BTreeMap<String, String>;

fn write(words: &Words) -> Written {
    let words = words.iter();
    words
        .map(|(number, word)| (number.to_string(), word.clone()))
        .collect()
}

/// What is no number is left out.
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

    #[test]
    fn what_a_later_writer_added_is_passed_over() {
        let json = r#"{"name":"x","type":"u128","colour":{"a":[1]},"unit":"furlong"}"#;
        let argument: Argument = serde_json::from_str(json).unwrap();
        assert_eq!(argument.kind, None);
        assert_eq!(argument.type_words(), "? furlong");
    }
}

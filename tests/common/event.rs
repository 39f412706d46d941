//! Events as `script --format json` prints them.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Number;

/// One line of `script --format json`.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) cpu: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) comm: String,
    /// `sdt_PROVIDER:NAME`.
    pub(crate) event: String,
    pub(crate) ip: u64,
    json: Value,
    /// Names of its arguments, in their order.
    names: Vec<String>,
}

/// What of a line needs the order of its members.
#[derive(Deserialize)]
struct Line {
    args: Names,
}

/// The keys of an object, in their order.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
            names.push(name);
        }
        Ok(Names(names))
    }
}

/// The events of a probe, without its provider.
pub(crate) fn events_named<'e>(events: &'e [Event], name: &str) -> Vec<&'e Event> {
    events.iter().filter(|event| event.name() == name).collect()
}

impl Event {
    /// Parses lines, and asserts that their times never fall.
    pub(crate) fn parse_lines(text: &str) -> Vec<Self> {
        let events: Vec<Self> = text.lines().map(Self::parse).collect();
        for pair in events.windows(2) {
            assert!(
                pair[0].time_ns <= pair[1].time_ns,
                "not in time order:\n{}\n{}",
                pair[0].json,
                pair[1].json
            );
        }
        events
    }

    fn parse(line: &str) -> Self {
        let json: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let number = |key: &str| {
            json[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} is no number in {line}"))
        };
        let text = |key: &str| {
            json[key]
                .as_str()
                .unwrap_or_else(|| panic!("{key} is no text in {line}"))
                .to_owned()
        };
        let ip = text("ip");
        let ip = ip
            .strip_prefix("0x")
            .unwrap_or_else(|| panic!("ip of {line}"));
        Self {
            time_ns: number("time_ns"),
            cpu: number("cpu"),
            pid: u32::try_from(number("pid")).expect("a process id"),
            tid: u32::try_from(number("tid")).expect("a thread id"),
            comm: text("comm"),
            event: text("event"),
            ip: u64::from_str_radix(ip, 16).unwrap_or_else(|error| panic!("{error} in {line}")),
            json,
            names: serde_json::from_str::<Line>(line)
                .map_or_else(|_| Vec::new(), |line| line.args.0),
        }
    }

    /// The probe's name, without the provider.
    pub(crate) fn name(&self) -> &str {
        self.event
            .split_once(':')
            .unwrap_or_else(|| panic!("event {}", self.event))
            .1
    }

    /// How many arguments it has, missing ones included.
    pub(crate) fn argument_count(&self) -> usize {
        self.names.len()
    }

    /// An argument by its name, as JSON has it.
    pub(crate) fn named(&self, name: &str) -> &Value {
        &self.json["args"][name]
    }

    /// Name of argument `number` (from 1).
    #[track_caller]
    pub(crate) fn name_of(&self, number: usize) -> &str {
        let name = number.checked_sub(1).and_then(|at| self.names.get(at));
        name.unwrap_or_else(|| panic!("no argument {number} in {}", self.json))
    }

    /// Argument `number` (from 1): its value, or the reason why it is missing. Panics if it has neither, or both. Of
    /// whatever else than a number JSON has, the number that it means.
    #[track_caller]
    pub(crate) fn argument(&self, number: usize) -> Result<Number, String> {
        let name = self.name_of(number);
        let value = &self.json["args"][name];
        let reason = self.json["missing"][name].as_str();
        // What may be a string is a number, too.
        if let Value::Number(number) = &self.json["numbers"][name] {
            return Ok(Number::from_json(number));
        }
        let integer = |text: &str| {
            let digits = text.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok().map(i128::from)
        };
        match (value, reason) {
            (Value::Null, Some("null pointer")) => Ok(Number::Integer(0)),
            (Value::Null, Some(reason)) if !reason.is_empty() => {
                let address = reason
                    .strip_prefix("string at ")
                    .and_then(|rest| integer(rest.strip_suffix(" not captured")?));
                address.map_or_else(|| Err(reason.to_owned()), |at| Ok(Number::Integer(at)))
            }
            (Value::Number(number), None) => Ok(Number::from_json(number)),
            (Value::Bool(truth), None) => Ok(Number::Integer(i128::from(*truth))),
            (Value::String(string), None) => {
                let labelled = string
                    .strip_suffix(')')
                    .and_then(|string| string.rsplit_once('('));
                let inner = labelled.map_or(&**string, |(_, number)| number);
                let number = integer(inner).or_else(|| inner.parse().ok());
                // JSON has no infinity and no NaN: they come as text.
                Ok(number.map(Number::Integer).unwrap_or_else(|| {
                    let float = string.parse();
                    Number::Float(float.unwrap_or_else(|_| panic!("{name} of {}", self.json)))
                }))
            }
            _ => panic!(
                "{name} has neither a value nor a reason, or both: {}",
                self.json
            ),
        }
    }

    /// Argument `number` (from 1), which must be a string.
    #[track_caller]
    pub(crate) fn string(&self, number: usize) -> &str {
        match &self.json["args"][self.name_of(number)] {
            Value::String(string) => string,
            other => panic!("arg{number} is {other} in {}", self.json),
        }
    }

    /// Argument `number` (from 1), which must be an integer.
    #[track_caller]
    pub(crate) fn integer(&self, number: usize) -> i128 {
        match self.argument(number) {
            Ok(Number::Integer(value)) => value,
            other => panic!("arg{number} is {other:?} in {}", self.json),
        }
    }
}

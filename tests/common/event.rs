//! Events as `script --format json` prints them.

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
        self.json["args"]
            .as_object()
            .map_or(0, serde_json::Map::len)
    }

    /// An argument by its name, as JSON has it.
    pub(crate) fn named(&self, name: &str) -> &Value {
        &self.json["args"][name]
    }

    /// Argument `number` (from 1): its value, or the reason why it is missing. Panics if it has neither, or both.
    #[track_caller]
    pub(crate) fn argument(&self, number: usize) -> Result<Number, String> {
        let name = format!("arg{number}");
        let value = &self.json["args"][&name];
        let reason = self.json["missing"][&name].as_str();
        match (value, reason) {
            (Value::Null, Some(reason)) if !reason.is_empty() => Err(reason.to_owned()),
            (Value::Number(number), None) => Ok(Number::from_json(number)),
            // JSON has no infinity and no NaN: they come as text.
            (Value::String(text), None) => Ok(Number::Float(
                text.parse()
                    .unwrap_or_else(|_| panic!("{name} of {}", self.json)),
            )),
            _ => panic!(
                "{name} has neither a value nor a reason, or both: {}",
                self.json
            ),
        }
    }

    /// Argument `number` (from 1), which must be a string.
    #[track_caller]
    pub(crate) fn string(&self, number: usize) -> &str {
        match &self.json["args"][format!("arg{number}")] {
            Value::String(text) => text,
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

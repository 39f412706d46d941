//! The lines of `bpftrace -f json`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::event::{
    BadLine, ImportedArgument, ImportedEvent, ImportedValue, MAX_ARGUMENTS, ParsedLine, ProbeName,
    fits, is_name,
};

/// A line of bpftrace.
#[derive(Deserialize)]
struct Output {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

impl Output {
    fn parse(line: &[u8]) -> Result<Self, BadLine> {
        // A string of a traced program may be cut within a character; bpftrace does not escape such bytes.
        let line = String::from_utf8_lossy(line);
        serde_json::from_str(&line).map_err(|error| BadLine::Json(error.to_string()))
    }
}

/// What a line is. `text` becomes the text of its `printf`.
pub(super) fn parse<'a>(line: &[u8], text: &'a mut String) -> Result<ParsedLine<'a>, BadLine> {
    if line.trim_ascii().is_empty() {
        return Ok(ParsedLine::Other);
    }
    let output = Output::parse(line)?;
    match (output.kind.as_str(), output.data) {
        ("printf", Value::String(printed)) => {
            *text = printed;
            ImportedEvent::parse(text).map(ParsedLine::Event)
        }
        ("lost_events", data) => Ok(ParsedLine::Lost(data["events"].as_u64().unwrap_or(0))),
        ("map" | "hist" | "stats" | "value", _) => Ok(ParsedLine::Aggregate),
        _ => Ok(ParsedLine::Other),
    }
}

impl<'a> ImportedEvent<'a> {
    /// Parses the text of a `printf`.
    pub(super) fn parse(text: &'a str) -> Result<Self, BadLine> {
        let text = text.strip_suffix('\n').ok_or(BadLine::NoEnd)?;
        let mut fields = text.split('\t');
        let mut next = |what| {
            fields.next().ok_or(BadLine::Field {
                what,
                found: String::new(),
            })
        };
        let time = number(next("a time in ns")?, "a time in ns")?;
        let cpu = number(next("a CPU")?, "a CPU")?;
        let probe = next("a probe")?;
        let probe = ProbeName::parse(probe).ok_or_else(|| BadLine::field("a probe", probe))?;
        let pid = number(next("a process id")?, "a process id")?;
        let tid = number(next("a thread id")?, "a thread id")?;
        let mut comm = Cow::Borrowed(next("the name of a thread")?);
        let mut arguments: Vec<ImportedArgument<'a>> = Vec::new();
        for field in fields {
            match ImportedArgument::parse(field) {
                Some(argument) if arguments.iter().any(|known| known.name == argument.name) => {
                    return Err(BadLine::field("another name of an argument", argument.name));
                }
                Some(argument) => arguments.push(argument),
                // A tab in a string.
                None => match arguments.last_mut() {
                    Some(last) => last.value.append(field),
                    None => append(&mut comm, field),
                },
            }
            if arguments.len() > MAX_ARGUMENTS {
                return Err(BadLine::TooManyArguments);
            }
        }
        Ok(Self {
            time,
            cpu,
            probe,
            pid,
            tid,
            comm,
            arguments,
        })
    }
}

impl<'a> ProbeName<'a> {
    /// `usdt:PATH:PROVIDER:NAME`, `usdt:PATH:NAME`, `sdt_PROVIDER:NAME`, or another kind of probe: `KIND:…:NAME`.
    fn parse(text: &'a str) -> Option<Self> {
        let (rest, name) = text.rsplit_once(':')?;
        let (kind, place) = rest.split_once(':').unwrap_or((rest, ""));
        let sdt = |file, provider| Self {
            file,
            provider,
            name,
            is_sdt: true,
        };
        let found = if let Some(provider) = rest.strip_prefix("sdt_") {
            sdt("", provider)
        } else if kind == "usdt" {
            match place.rsplit_once(':') {
                Some((file, provider)) => sdt(file, provider),
                None => sdt(place, "usdt"),
            }
        } else if kind == "tracepoint" {
            Self {
                file: "",
                provider: place,
                name,
                is_sdt: false,
            }
        } else {
            Self {
                file: place,
                provider: kind,
                name,
                is_sdt: false,
            }
        };
        found.is_usable().then_some(found)
    }
}

impl<'a> ImportedArgument<'a> {
    /// `NAME=VALUE`, `NAME:s=TEXT` or `NAME:f=FLOAT`; `None` if it does not begin so.
    fn parse(field: &'a str) -> Option<Self> {
        let (left, value) = field.split_once('=')?;
        let (name, kind) = left.split_once(':').unwrap_or((left, ""));
        if !is_name(name) {
            return None;
        }
        let value = match kind {
            "" => ImportedValue::guess(value),
            "s" => ImportedValue::String(Cow::Borrowed(value)),
            "f" => ImportedValue::Float(value.parse().ok()?),
            _ => return None,
        };
        Some(Self { name, value })
    }
}

impl<'a> ImportedValue<'a> {
    fn guess(text: &'a str) -> Self {
        let number: Option<i128> = text.parse().ok();
        // Other texts, such as 007 and +1, could not be shown again.
        match number
            .filter(fits)
            .filter(|number| number.to_string() == text)
        {
            Some(number) => Self::Integer(number),
            None => Self::String(Cow::Borrowed(text)),
        }
    }

    /// Appends a tab and more: the value is a string with a tab.
    fn append(&mut self, more: &str) {
        let mut text = Cow::Owned(self.text().into_owned());
        append(&mut text, more);
        *self = Self::String(text);
    }
}

fn append(text: &mut Cow<'_, str>, more: &str) {
    let text = text.to_mut();
    text.push('\t');
    text.push_str(more);
}

fn number<T: std::str::FromStr>(text: &str, what: &'static str) -> Result<T, BadLine> {
    text.parse().map_err(|_| BadLine::field(what, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `e`: event, `b`: bad, `l`: lost, `a`: aggregate, `o`: other.
    fn kinds(lines: &[u8]) -> String {
        let mut text = String::new();
        let kind = |line: &[u8]| match parse(line, &mut text) {
            Ok(ParsedLine::Event(_)) => 'e',
            Ok(ParsedLine::Lost(3)) => 'l',
            Ok(ParsedLine::Lost(_)) | Err(_) => 'b',
            Ok(ParsedLine::Aggregate) => 'a',
            Ok(ParsedLine::Other) => 'o',
        };
        lines.split(|byte| *byte == b'\n').map(kind).collect()
    }

    #[test]
    fn lines_of_bpftrace() {
        let text = br#"{"type": "attached_probes", "data": {"probes": 1}}

{"type": "printf", "data": "1\t0\tkprobe:x\t1\t1\ta\n"}
{"type": "printf", "data": "hello\n"}
{"type": "lost_events", "data": {"events": 3}}
{"type": "map", "data": {"@": 5}}
{"type": "printf", "data": "1\t0\tkp"#;
        assert_eq!(kinds(text), "ooeblab");
        assert_eq!(
            kinds(
                b"{\"type\": \"printf\", \"data\": \"1\\t0\\tkprobe:x\\t1\\t1\\ta\\tq=\xff\\n\"}"
            ),
            "e"
        );
        assert_eq!(kinds(br#"{"type": "time", "data": ""}"#), "o");
        assert_eq!(kinds(b"[1]\n{}\n{\"type\": 1}"), "bbb");
    }

    #[test]
    fn an_event() {
        let text =
            "123\t1\tusdt:/usr/bin/a:b:c:d\t7\t8\tmy\tname\tn=-5\tq=a\tb\tm:s=12\tx:f=1.5\to=007\n";
        let event = ImportedEvent::parse(text).unwrap();
        assert_eq!(
            (event.time, event.cpu, event.pid, event.tid),
            (123, 1, 7, 8)
        );
        assert_eq!(event.comm, "my\tname");
        assert_eq!(event.probe.file, "/usr/bin/a:b");
        assert_eq!(event.probe.event(), "sdt_c:d");
        let values: Vec<_> = event.arguments.iter().map(|one| &one.value).collect();
        let text = |text: &'static str| ImportedValue::String(Cow::Borrowed(text));
        let expected = [
            ImportedValue::Integer(-5),
            text("a\tb"),
            text("12"),
            ImportedValue::Float(1.5),
            text("007"),
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn probes_of_other_kinds() {
        let event = |text| ProbeName::parse(text).map(|probe| probe.event());
        for (text, expected) in [
            ("tracepoint:sched:sched_switch", "sched:sched_switch"),
            ("uprobe:/bin/bash:readline", "uprobe:readline"),
            ("kprobe:vfs_read", "kprobe:vfs_read"),
            ("sdt_app:done", "sdt_app:done"),
            ("usdt:/bin/x:done", "sdt_usdt:done"),
        ] {
            assert_eq!(event(text).as_deref(), Some(expected));
        }
        for wrong in ["", "BEGIN", ":", "usdt:/x:", "tracepoint:x"] {
            assert_eq!(event(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_event() {
        for wrong in [
            "",
            "\n",
            "hello\n",
            "1\t2\n",
            "1\t0\tkprobe:x\t1\t1\ta",
            "-1\t0\tkprobe:x\t1\t1\ta\n",
            "1\t0\tkprobe:x\t1\t1\ta\tn=1\tn=2\n",
            "1\t0\tkprobe:x\t99999999999\t1\ta\n",
        ] {
            assert!(ImportedEvent::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

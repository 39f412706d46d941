//! The lines of `bpftrace -f json`.

mod printf;

use serde::Deserialize;
use serde_json::Value;

use super::bad_line::BadLine;
use super::event::ImportedEvent;
use super::parsed_line::ParsedLine;

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
}

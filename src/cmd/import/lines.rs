//! The lines of `bpftrace -f json`.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use super::bad_line::BadLine;
use super::event::ImportedEvent;

/// Maximum length of a line, bytes.
const MAX_LINE: u64 = 1 << 20;

/// A line.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A `printf` of an event.
    Event(ImportedEvent<'a>),
    /// So many events were lost.
    Lost(u64),
    /// A map, histogram or statistics.
    Aggregate,
    /// Neither an event nor an error.
    Other,
}

/// A line of bpftrace.
#[derive(Deserialize)]
struct Output {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

/// Reads lines of a bounded length.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    bytes: Vec<u8>,
    is_long: bool,
    number: u64,
    /// The text of the current line's `printf`.
    text: String,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            is_long: false,
            number: 0,
            text: String::new(),
        }
    }

    /// Reads the next line; `false` at the end.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        let input = &mut self.input;
        let read = input.take(MAX_LINE).read_until(b'\n', &mut self.bytes)?;
        self.is_long = self.bytes.len() as u64 >= MAX_LINE && self.bytes.last() != Some(&b'\n');
        if self.is_long {
            self.input.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(read > 0)
    }

    /// Number of the line, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// What the line is.
    pub(super) fn line(&mut self) -> Result<Line<'_>, BadLine> {
        if self.is_long {
            return Err(BadLine::TooLong);
        }
        if self.bytes.trim_ascii().is_empty() {
            return Ok(Line::Other);
        }
        // A text of a traced program may be cut within a character; bpftrace does not escape such bytes.
        let line = String::from_utf8_lossy(&self.bytes);
        let output: Output =
            serde_json::from_str(&line).map_err(|error| BadLine::Json(error.to_string()))?;
        match (output.kind.as_str(), output.data) {
            ("printf", Value::String(text)) => {
                self.text = text;
                ImportedEvent::parse(&self.text).map(Line::Event)
            }
            ("lost_events", data) => Ok(Line::Lost(data["events"].as_u64().unwrap_or(0))),
            ("map" | "hist" | "stats" | "value", _) => Ok(Line::Aggregate),
            _ => Ok(Line::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `e`: event, `b`: bad, `l`: lost, `a`: aggregate, `o`: other.
    fn kinds(text: &[u8]) -> String {
        let mut lines = Lines::new(text);
        let mut kinds = String::new();
        while lines.advance().unwrap() {
            kinds.push(match lines.line() {
                Ok(Line::Event(_)) => 'e',
                Ok(Line::Lost(3)) => 'l',
                Ok(Line::Lost(_)) | Err(_) => 'b',
                Ok(Line::Aggregate) => 'a',
                Ok(Line::Other) => 'o',
            });
        }
        kinds
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
        let mut long = vec![b'x'; 3 << 20];
        long.extend(b"\n{\"type\": \"time\", \"data\": \"\"}");
        assert_eq!(kinds(&long), "bo");
        assert_eq!(kinds(b""), "");
    }
}

//! The recordings that are exported.

use std::path::PathBuf;

use crate::common::{Build, Lab};
use crate::whole::WholeRecording;

/// Events of a recording.
const EVENTS: u64 = 4_000_000;
const CALLS: &str = "provider = \"hot\"\n[[probe]]\nname = \"url\"\narguments = [\"id\", \"url: str\", \"status\", \"client: ptr\"]\n";
const STATEMENTS: &str = "provider = \"statements\"\n[[probe]]\nname = \"query__start\"\narguments = [\"id\", \"query: str\"]\n[[probe]]\nname = \"query__done\"\narguments = [\"id\", \"rows\"]\n";

/// A trace, and what is in it.
pub(crate) struct Recorded {
    pub(crate) what: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) events: u64,
    pub(crate) spans: u64,
}

impl Recorded {
    /// Slices of a timeline: spans, else events.
    pub(crate) const fn slices(&self) -> u64 {
        match self.spans {
            0 => self.events,
            spans => spans,
        }
    }
}

/// Calls with three integers and a string.
pub(crate) fn calls(lab: &Lab) -> Recorded {
    let program = Build::USUAL.make(lab, "kinds.c", "kinds");
    let command = format!("echo | {} {EVENTS} 1 url", program.display());
    let event = format!("sdt_hot:url@{}", program.display());
    Recorded {
        what: "Calls with one string",
        file: record(lab, "of-calls", CALLS, &event, &["sh", "-c", &command]),
        events: EVENTS,
        spans: 0,
    }
}

/// Statements, of which each has a begin with the statement and an end.
pub(crate) fn statements(lab: &Lab) -> Recorded {
    let program = Build::USUAL.make(lab, "statements.c", "statements");
    let event = format!("sdt_statements:*@{}", program.display());
    let program = program.to_str().expect("a path");
    let spans = EVENTS / 2;
    let command = [program, &spans.to_string()];
    Recorded {
        what: "Statements that differ",
        file: record(lab, "of-statements", STATEMENTS, &event, &command),
        events: EVENTS,
        spans,
    }
}

fn record(lab: &Lab, name: &str, schema: &str, event: &str, command: &[&str]) -> PathBuf {
    let schema_file = lab.file(&format!("{name}.toml"));
    std::fs::write(&schema_file, schema).expect("a file");
    let recording = WholeRecording {
        file: name,
        event,
        options: &["--schema", schema_file.to_str().expect("a path")],
        command,
    };
    assert_eq!(recording.make(lab), EVENTS);
    lab.file(name)
}

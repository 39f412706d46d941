//! The text that `babeltrace2` prints, one line an event (`plugins/text/pretty/print.c` of babeltrace2 2.0):
//!
//! ```text
//! [12:00:00.000000000] (+0.000000001) host provider:name: { cpu_id = 3 }, { vpid = 1, vtid = 2, procname = "x" }, { a = 1, b = "text" }
//! ```
//!
//! The structures are the contexts of the packet, the stream and the event, where there are any, and then the fields. With `--names all` the
//! parts before them have names, and the structures, too.

mod context;
mod cursor;
mod field_value;
mod header;
mod loss;
mod quoted;
mod structures;
mod timestamps;

pub(super) use self::timestamps::{TimeForm, Timestamps};

use super::bad_line::BadLine;
use super::event::{ImportedEvent, ProbeName};
use super::line::Line;

use self::context::Context;
use self::cursor::Cursor;
use self::header::Header;
use self::structures::Structures;

/// Whether babeltrace2 prints such a line.
pub(super) fn is_line(line: &[u8]) -> bool {
    Header::time(&mut Cursor::new(line)).is_some_and(timestamps::is_time)
}

/// What a line is.
pub(super) fn parse<'a>(line: &'a [u8], times: &mut Timestamps) -> Result<Line<'a>, BadLine> {
    if line.trim_ascii().is_empty() {
        return Ok(Line::Other);
    }
    // A line that is cut between two structures would be an event with other fields.
    let line = line.strip_suffix(b"\n").ok_or(BadLine::NoNewline)?;
    if let Some(loss) = loss::parse(line) {
        return Ok(loss);
    }
    let mut cursor = Cursor::new(line);
    let header = Header::parse(&mut cursor)?;
    let probe = ProbeName::of_event(header.name)
        .ok_or_else(|| BadLine::field("the name of an event", header.name))?;
    let mut structures = Structures::parse(&mut cursor)?;
    let context = Context::take(&mut structures)?;
    let arguments = structures.into_arguments()?;
    // Last, because a line that is left out for another reason says nothing about the time.
    let time = times.time(header.time)?;
    Ok(Line::Event(ImportedEvent {
        time,
        cpu: context.cpu,
        probe,
        pid: context.pid,
        tid: context.tid,
        comm: context.comm,
        arguments,
    }))
}

#[cfg(test)]
mod tests;

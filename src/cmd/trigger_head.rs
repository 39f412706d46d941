//! What a report of a triggered trace begins with: what fired, the last events of its thread, and those of others.

use std::collections::VecDeque;
use std::io::{self, Write};

use usdtrec_format::clock_seconds;
use usdtrec_format::trace::FiredTrigger;
use usdtrec_report::script::{self, ScriptOptions};
use usdtrec_report::trigger;
use usdtrec_report::{EventSelection, ReportError, TimeSpan, TraceSession, TriggerFacts};

/// Number of events that are shown of the thread, and of all others together.
const EVENTS: usize = 10;
/// How long before the trigger those of others are, ns.
const BEFORE: u64 = 1_000_000_000;
/// How long before the trigger events of the thread are looked for, ns; the last attempt is the whole trace.
const LENGTHS: [u64; 3] = [10_000_000, BEFORE, u64::MAX];

/// Writes the head; nothing if no trigger fired. `trace` are the options that name the trace.
///
/// # Errors
/// The errors of [`script::print`].
pub(super) fn write(
    session: &TraceSession,
    trace: &str,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let Some(trigger) = TriggerFacts::of_session(session) else {
        return Ok(());
    };
    let fired = &trigger.fired;
    let mut text = Vec::new();
    writeln!(text, "# trigger: {}", trigger::sentence(&trigger))?;
    if fired.tid != 0 {
        writeln!(text, "# the last events of its thread, {}:", fired.tid)?;
        put_lines(&mut text, lines_in_thread(session, fired)?)?;
        writeln!(text, "# the last events of others in the second before it:")?;
    } else {
        writeln!(text, "# the last events:")?;
    }
    put_lines(&mut text, lines_elsewhere(session, fired)?)?;
    let all = around(trace, fired.time_ns);
    writeln!(text, "# all of that second: {all}\n")?;
    Ok(out.write_all(&text)?)
}

/// The last events of the thread up to the trigger.
fn lines_in_thread(session: &TraceSession, fired: &FiredTrigger) -> Result<LastLines, ReportError> {
    let mut lines = LastLines::default();
    for length in LENGTHS {
        let selection = EventSelection {
            tids: vec![fired.tid],
            ..up_to(fired.time_ns, length)
        };
        lines = printed(session, &selection)?;
        if lines.0.len() >= EVENTS {
            break;
        }
    }
    Ok(lines)
}

/// The last events of all other threads up to the trigger.
fn lines_elsewhere(session: &TraceSession, fired: &FiredTrigger) -> Result<LastLines, ReportError> {
    let others = (fired.tid != 0).then(|| format!("tid != {}", fired.tid));
    let selection = EventSelection {
        filter: others,
        ..up_to(fired.time_ns, BEFORE)
    };
    printed(session, &selection)
}

/// The events of a time up to another one, ns.
fn up_to(until: u64, length: u64) -> EventSelection {
    let first = until.saturating_sub(length);
    EventSelection {
        time: Some(TimeSpan::Times(Some(first), Some(until))),
        ..EventSelection::default()
    }
}

fn printed(session: &TraceSession, selection: &EventSelection) -> Result<LastLines, ReportError> {
    let options = ScriptOptions {
        hide_call_graph: true,
        hide_address: true,
        ..ScriptOptions::default()
    };
    let mut lines = LastLines::default();
    script::print(session, selection, &options, &mut lines)?;
    lines.end();
    Ok(lines)
}

fn put_lines(out: &mut Vec<u8>, lines: LastLines) -> io::Result<()> {
    if lines.0.is_empty() {
        return writeln!(out, "  none");
    }
    for line in lines.0 {
        out.write_all(&line)?;
    }
    Ok(())
}

/// The command that prints the second before the trigger.
fn around(trace: &str, time: u64) -> String {
    format!(
        "usdtrec script{trace} --time {},{}",
        clock_seconds(time.saturating_sub(BEFORE)),
        // The trigger is in it.
        clock_seconds(time + 1000)
    )
}

/// The last lines of what is written.
#[derive(Debug, Default)]
struct LastLines(VecDeque<Vec<u8>>, Vec<u8>);

impl LastLines {
    fn end(&mut self) {
        if !self.1.is_empty() {
            self.1.push(b'\n');
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.0.push_back(std::mem::take(&mut self.1));
        if self.0.len() > EVENTS {
            self.0.pop_front();
        }
    }
}

impl Write for LastLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.1.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.keep();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut lines = LastLines::default();
        for number in 0..EVENTS + 2 {
            let line = format!("line {number}\n");
            let (first, second) = line.split_at(3);
            lines.write_all(first.as_bytes()).expect("memory");
            lines.write_all(second.as_bytes()).expect("memory");
        }
        lines.write_all(b"not ended").expect("memory");
        lines.end();
        assert_eq!(lines.0.len(), EVENTS);
        assert_eq!(lines.0[0], b"line 3\n");
        assert_eq!(lines.0[EVENTS - 1], b"not ended\n");
    }
}

//! Notices of lost events, which babeltrace2 prints to standard error.

use memchr::memmem;

use super::super::line::Line;
use super::cursor::Cursor;

/// `WARNING: Tracer discarded 5 events between …`, or `… may have discarded events …`, also of packets; with colors on terminals.
pub(super) fn parse(line: &[u8]) -> Option<Line<'static>> {
    const COLORS: usize = 40;
    let start = line.get(..COLORS).unwrap_or(line);
    if line.starts_with(b"[") || memmem::find(start, b"WARNING").is_none() {
        return None;
    }
    let mut cursor = Cursor::new(line);
    cursor.until(b": Tracer ")?;
    if cursor.skip(b"may have discarded ") {
        return Some(Line::LostSome);
    }
    if !cursor.skip(b"discarded ") {
        return None;
    }
    let count = std::str::from_utf8(cursor.until(b" ")?).ok()?;
    let count: u64 = count.parse().ok()?;
    Some(if cursor.skip(b"event") {
        Line::Lost(count)
    } else {
        Line::LostSome
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices() {
        let lost = |line: &str| match parse(line.as_bytes()) {
            Some(Line::Lost(count)) => Some(count),
            Some(Line::LostSome) => Some(0),
            _ => None,
        };
        let between =
            "between [03:52:47.002365632] and [03:52:47.005559616] in trace \"vm\" (no UUID)";
        let line = |what: &str| format!("WARNING: Tracer {what} {between}");
        assert_eq!(lost(&line("discarded 16395 events")), Some(16395));
        assert_eq!(lost(&line("discarded 1 event")), Some(1));
        assert_eq!(lost(&line("discarded 3 packets")), Some(0));
        assert_eq!(lost(&line("may have discarded events")), Some(0));
        let colored = "\x1b[33m\x1b[1mWARNING\x1b[0m\x1b[33m: Tracer discarded 7 events ";
        assert_eq!(lost(colored), Some(7));
        for other in [
            "",
            "WARNING: x",
            "WARNING: Tracer discarded x events",
            "WARNING: Tracer discarded",
        ] {
            assert_eq!(lost(other), None);
        }
    }
}

//! Counts of lines.

use super::event::{BadLine, ParsedLine};
use crate::terminal::say;

/// Number of bad lines that are shown.
const MAX_MESSAGES: u64 = 10;

/// What the lines are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) events: u64,
    /// Lines that are not of a known form.
    pub(super) bad: u64,
    /// Maps and histograms.
    aggregates: u64,
    /// Events that were lost.
    lost: u64,
}

impl Counts {
    /// Counts a line without an event.
    pub(super) fn other(&mut self, line: &ParsedLine<'_>) {
        match line {
            ParsedLine::Lost(lost) => self.lost = self.lost.saturating_add(*lost),
            ParsedLine::Aggregate => self.aggregates += 1,
            ParsedLine::Event(_) | ParsedLine::Other => {}
        }
    }

    pub(super) fn bad(&mut self, name: &str, number: u64, error: &BadLine) {
        self.bad += 1;
        if self.bad <= MAX_MESSAGES {
            say(format_args!("usdtrec: {name}: line {number}: {error}"));
        }
    }

    /// Why losses are not exact.
    pub(super) fn losses(&self) -> String {
        match self.lost {
            0 => "bpftrace does not say which events it lost".to_owned(),
            lost => format!("bpftrace lost {lost} events"),
        }
    }

    /// Prints what is not an event.
    pub(super) fn print(&self, name: &str) {
        let lines = |count| if count == 1 { "line is" } else { "lines are" };
        if self.bad > 0 {
            let (bad, are) = (self.bad, lines(self.bad));
            say(format_args!("usdtrec: {name}: {bad} {are} left out"));
        }
        if self.aggregates > 0 {
            let (count, are) = (self.aggregates, lines(self.aggregates));
            say(format_args!(
                "usdtrec: {name}: {count} {are} of maps, which have no events"
            ));
        }
        if self.lost > 0 {
            say(format_args!("usdtrec: {name}: {}", self.losses()));
        }
    }
}

//! Colours of a report.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// Styles of the parts of a report; all plain without colours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Theme {
    /// The first line of a table or section.
    pub(crate) heading: Style,
    /// Lines about the whole trace.
    pub(crate) remark: Style,
    /// Losses.
    pub(crate) alarm: Style,
    /// Bars and lines.
    pub(crate) bar: Style,
}

impl Theme {
    pub(crate) fn new(colours: bool) -> Self {
        if !colours {
            return Self::default();
        }
        Self {
            heading: Style::new().bold(),
            remark: Style::new().dimmed(),
            alarm: AnsiColor::Red.on_default().bold(),
            bar: AnsiColor::Cyan.on_default(),
        }
    }

    /// Appends the first line of a table or section.
    pub(crate) fn put_heading(self, line: &str, out: &mut String) {
        put(self.heading, line, out);
    }

    /// Appends a line about the whole trace.
    pub(crate) fn put_remark(self, line: &str, out: &mut String) {
        put(self.remark, line, out);
    }

    /// Appends a line about losses.
    pub(crate) fn put_alarm(self, line: &str, out: &mut String) {
        put(self.alarm, line, out);
    }

    /// Appends a line about the whole trace, of which events may be lost.
    pub(crate) fn put_totals(self, line: &str, lost: u64, out: &mut String) {
        match lost {
            0 => self.put_remark(line, out),
            _ => self.put_alarm(line, out),
        }
    }

    /// A bar.
    pub(crate) fn bar(self, bar: &str) -> String {
        format!("{}{bar}{:#}", self.bar, self.bar)
    }
}

fn put(style: Style, line: &str, out: &mut String) {
    let _ = writeln!(out, "{style}{line}{style:#}");
}

//! Colours of a report.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// Styles; plain ones where there are to be no colours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Theme {
    /// What a table or section begins with.
    pub(crate) heading: Style,
    /// What is said of the trace as a whole.
    pub(crate) remark: Style,
    /// What should be seen first.
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

    /// Appends a line that begins a table or section.
    pub(crate) fn put_heading(self, line: &str, out: &mut String) {
        put(self.heading, line, out);
    }

    /// Appends a line that says something of the trace as a whole.
    pub(crate) fn put_remark(self, line: &str, out: &mut String) {
        put(self.remark, line, out);
    }

    /// Appends a line that should be seen first.
    pub(crate) fn put_alarm(self, line: &str, out: &mut String) {
        put(self.alarm, line, out);
    }

    /// A bar.
    pub(crate) fn bar(self, bar: &str) -> String {
        format!("{}{bar}{:#}", self.bar, self.bar)
    }
}

fn put(style: Style, line: &str, out: &mut String) {
    let _ = writeln!(out, "{style}{line}{style:#}");
}

//! Looks of a text: colours, and the width of its lines.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// Columns of a terminal, if nobody says how many it has.
pub(crate) const WIDTH: usize = 80;

/// Styles of the parts of a text, all plain without colours, and the width of its lines.
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
    /// Width of lines, columns; `None` if nobody said it.
    columns: Option<usize>,
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
            columns: None,
        }
    }

    /// The same for lines of another width.
    pub(crate) const fn with_columns(self, columns: Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// Width of lines, columns.
    pub(crate) fn columns(self) -> usize {
        self.columns.unwrap_or(WIDTH)
    }

    /// Whether lines are for a place of this width, as a terminal is; if not, other programs may look for what is in them.
    pub(crate) const fn has_width(self) -> bool {
        self.columns.is_some()
    }

    /// The room for something that has `usual` columns in lines of [`WIDTH`] columns: as much more as lines are wider; in narrower lines half of what it
    /// has, at least.
    pub(crate) fn room(self, usual: usize) -> usize {
        let columns = (usual + self.columns()).saturating_sub(WIDTH);
        columns.max(usual / 2)
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

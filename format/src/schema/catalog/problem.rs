//! The result of parsing a schema file: probes, and problems with their positions.

use std::fmt;

use crate::schema::ProbeSchema;

/// An error or a note about a schema file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Whether it is an error. Notes say what was omitted or guessed.
    pub error: bool,
    /// Message.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.error { "error" } else { "note" };
        let message = crate::escape::escape(&self.message);
        write!(f, "{}:{}: {kind}: {message}", self.line, self.column)
    }
}

/// Maximum number of problems reported for a file.
const MAX: usize = 200;

/// Collects the problems of a file.
pub(super) struct Problems<'t> {
    text: &'t str,
    /// Offsets of the starts of lines.
    lines: Vec<usize>,
    found: Vec<Problem>,
    /// Number of problems that are not reported.
    others: usize,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            lines: std::iter::once(0).chain(starts).collect(),
            found: Vec::new(),
            others: 0,
        }
    }

    /// Adds an error at an offset.
    pub(super) fn error(&mut self, at: usize, message: impl Into<String>) {
        self.add(at, true, message.into());
    }

    /// Adds a note at an offset.
    pub(super) fn note(&mut self, at: usize, message: impl Into<String>) {
        self.add(at, false, message.into());
    }

    fn add(&mut self, at: usize, error: bool, message: String) {
        if self.found.len() >= MAX {
            self.others += 1;
            return;
        }
        let line = self.lines.partition_point(|&start| start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or("");
        // Avoids counting the characters of a very long line for each problem.
        let column = if before.len() > 4096 {
            before.len()
        } else {
            before.chars().count()
        };
        self.found.push(Problem {
            line,
            column: column + 1,
            error,
            message,
        });
    }

    /// All problems, in the order of the text.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.found
            .sort_by_key(|problem| (problem.line, problem.column));
        if self.others > 0 {
            let (line, column) = self
                .found
                .last()
                .map_or((1, 1), |last| (last.line, last.column));
            self.found.push(Problem {
                line,
                column,
                error: false,
                message: format!("and {} more", self.others),
            });
        }
        self.found
    }
}

/// The result of parsing a schema file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The valid probes, in the order of the text.
    pub probes: Vec<ProbeSchema>,
    /// Errors, and notes about what was omitted or guessed, in the order of the text.
    pub problems: Vec<Problem>,
}

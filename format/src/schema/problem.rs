//! What is wrong with a schema's text, and where.

use std::fmt;

/// Something in a schema's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// Character in the line, counted from 1.
    pub column: usize,
    /// Whether it is an error; else it tells what was left out or guessed.
    pub error: bool,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.error { "error" } else { "note" };
        let message = crate::escape::escape(&self.message);
        write!(f, "{}:{}: {kind}: {message}", self.line, self.column)
    }
}

/// Most problems that are told of one text.
const MOST: usize = 200;

/// Gathers the problems of a text.
pub(super) struct Problems<'t> {
    text: &'t str,
    /// Offsets at which lines begin.
    lines: Vec<usize>,
    found: Vec<Problem>,
    /// Problems beyond those that are told.
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
        if self.found.len() >= MOST {
            self.others += 1;
            return;
        }
        let line = self.lines.partition_point(|&start| start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or("");
        // A line of a megabyte is not walked for each of its problems.
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

    /// All, in the order of the text.
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

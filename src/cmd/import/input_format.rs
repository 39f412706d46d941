//! The forms of input.

use std::fmt;
use std::io::{self, BufRead};

use super::babeltrace::{self, Timestamps};
use super::bad_line::BadLine;
use super::bpftrace;
use super::counts::Counts;
use super::line::Line;
use super::lines::Lines;

/// The program whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputFormat {
    /// `bpftrace -f json`.
    Bpftrace,
    /// `babeltrace2`, as text.
    Babeltrace,
}

/// Parses the lines of one form, from the first to the last.
#[derive(Debug)]
pub(super) enum LineParser {
    Bpftrace {
        /// The text of the current line's `printf`.
        text: String,
    },
    Babeltrace(Timestamps),
}

impl InputFormat {
    /// The form of the first line that has a known one.
    pub(super) fn find(input: impl BufRead) -> io::Result<Option<Self>> {
        let mut lines = Lines::new(input);
        while lines.advance()? {
            if let Some(found) = lines.line().ok().and_then(Self::of_line) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn of_line(line: &[u8]) -> Option<Self> {
        if babeltrace::is_line(line) {
            return Some(Self::Babeltrace);
        }
        bpftrace::is_line(line).then_some(Self::Bpftrace)
    }

    pub(super) fn parser(self) -> LineParser {
        match self {
            Self::Bpftrace => LineParser::Bpftrace {
                text: String::new(),
            },
            Self::Babeltrace => LineParser::Babeltrace(Timestamps::default()),
        }
    }

    /// Why losses are not exact.
    pub(super) fn losses(self, counts: &Counts) -> String {
        let (lost, some) = (counts.lost, counts.lost_some);
        match (self, lost) {
            (Self::Bpftrace, 0) => "bpftrace does not say which events it lost".to_owned(),
            (Self::Bpftrace, lost) => format!("bpftrace lost {lost} events"),
            (Self::Babeltrace, _) if some => {
                format!(
                    "the tracer lost {lost} events, and others of which the number is not known"
                )
            }
            (Self::Babeltrace, 0) => {
                "babeltrace2 prints to standard error what the tracer lost".to_owned()
            }
            (Self::Babeltrace, lost) => format!("the tracer lost {lost} events"),
        }
    }
}

impl fmt::Display for InputFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bpftrace => "bpftrace -f json",
            Self::Babeltrace => "babeltrace2",
        })
    }
}

impl LineParser {
    /// What a line is.
    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, BadLine> {
        match self {
            Self::Bpftrace { text } => bpftrace::parse(line, text),
            Self::Babeltrace(times) => babeltrace::parse(line, times),
        }
    }

    /// What the times of the lines were, if they have several forms.
    pub(super) fn into_times(self) -> Option<Timestamps> {
        match self {
            Self::Bpftrace { .. } => None,
            Self::Babeltrace(times) => Some(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_line_says_the_form() {
        let find = |text: &str| InputFormat::find(text.as_bytes()).unwrap();
        let json = r#"{"type": "printf", "data": "x"}"#;
        let event = "[1.000000000] vm a:b: { }, { }";
        assert_eq!(find(""), None);
        assert_eq!(find("\nhello\n[hello] x\n{}\n[1, 2]\n"), None);
        assert_eq!(
            find(&format!("hello\n{json}\n{event}\n")),
            Some(InputFormat::Bpftrace)
        );
        assert_eq!(
            find(&format!("hello\n{event}\n{json}\n")),
            Some(InputFormat::Babeltrace)
        );
    }
}

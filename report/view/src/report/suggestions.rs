//! Suggestions of further questions.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::next_questions::{NextQuestion, next_questions};

use crate::answer_style::AnswerStyle;
use crate::columns::left;
use crate::hints::Hint;
use crate::theme::Theme;

/// A line of the list.
struct Line {
    command: String,
    /// What it shows.
    shows: &'static str,
}

/// Appends the suggested questions, in the words of the program that shows them.
pub(crate) fn put(facts: &SummaryFacts, style: AnswerStyle, trace: &str, out: &mut String) {
    let AnswerStyle { theme, hints, .. } = style;
    let lines = next_questions(facts).into_iter().filter_map(|question| {
        let command = hints.words(&Hint::Next {
            question: &question,
            trace,
        });
        let shows = shows(&question);
        (!command.is_empty()).then_some(Line { command, shows })
    });
    let lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return;
    }
    out.push('\n');
    theme.put_heading("Next", out);
    put_lines(&lines, theme, out);
}

/// What the answer shows.
const fn shows(question: &NextQuestion) -> &'static str {
    match question {
        NextQuestion::SlowGroups { .. } => "which one is slow",
        NextQuestion::Durations { .. } => "how the times are spread",
        NextQuestion::DurationsOverTime { .. } => "and over time",
        NextQuestion::Values { .. } => "its most frequent values",
        NextQuestion::Processes => "who hits what",
        NextQuestion::Rate { .. } => "how often, over time",
        NextQuestion::Events { .. } => "its events, one by one",
    }
}

fn put_lines(lines: &[Line], theme: Theme, out: &mut String) {
    let widths = lines.iter().map(|line| line.command.width());
    let width = widths.max().unwrap_or(0);
    let mut lengths = lines.iter().map(|line| line.shows.width());
    let fits = lengths.all(|length| 2 + width + 2 + length <= theme.columns());
    for Line { command, shows } in lines {
        let _ = if fits {
            writeln!(out, "  {}  {shows}", left(command, width))
        } else {
            writeln!(out, "  {command}\n      {shows}")
        };
    }
}

//! The way to the next question.

use std::fmt::Write as _;

use usdtrec_format::escape::escape;

use crate::analysis::summary::facts::SummaryFacts;
use crate::analysis::summary::next::{NextQuestion, next};
use crate::trace::session::event_name::short_name as short;
use crate::view::columns::WIDTH;
use crate::view::text::form::time;
use crate::view::theme::Theme;

/// A line of the list.
struct Line {
    command: String,
    /// What it shows.
    shows: &'static str,
}

/// Appends command lines that lead on.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    let file = &facts.origin.file;
    let input = if file == "usdtrec.data" {
        String::new()
    } else {
        format!(" -i {}", shell_word(file))
    };
    let lines = next(facts)
        .iter()
        .map(|next| line(next, &input))
        .collect::<Vec<Line>>();
    if lines.is_empty() {
        return;
    }
    out.push('\n');
    theme.put_heading("Next", out);
    put_lines(&lines, out);
}

fn line(next: &NextQuestion, input: &str) -> Line {
    let report = |options: String| format!("usdtrec report{input} {options}");
    let (command, shows) = match next {
        NextQuestion::SlowGroups { span, by } => {
            let (span, by) = (shell_word(span), shell_word(by));
            let options = format!("--span {span} --by {by} --order p99");
            (report(options), "which one is slow")
        }
        NextQuestion::Durations { span } => {
            let options = format!("--hist span:{}", shell_word(span));
            (report(options), "how the times are spread")
        }
        NextQuestion::DurationsOverTime { span } => {
            let options = format!("--heatmap span:{}", shell_word(span));
            (report(options), "and over time")
        }
        NextQuestion::Values { event, argument } => {
            let (event, argument) = (shell_word(short(event)), shell_word(argument));
            let options = format!("-e {event} --sort {argument}");
            (report(options), "its most frequent values")
        }
        NextQuestion::Processes => (report("--sort comm,event".to_owned()), "who hits what"),
        NextQuestion::Rate { interval } => {
            let interval = time(*interval as f64);
            let options = format!("--rate {}", interval.trim_end_matches(".00"));
            (report(options), "how often, over time")
        }
        NextQuestion::Events { event } => {
            let event = shell_word(short(event));
            let line = format!("usdtrec script{input} -e {event} --time 0%-1%");
            (line, "its events, one by one")
        }
    };
    Line { command, shows }
}

fn put_lines(lines: &[Line], out: &mut String) {
    let length = |line: &str| line.chars().count();
    let width = lines
        .iter()
        .map(|line| length(&line.command))
        .max()
        .unwrap_or(0);
    let fits = lines
        .iter()
        .all(|line| 2 + width + 2 + length(line.shows) <= WIDTH);
    for Line { command, shows } in lines {
        let _ = if fits {
            writeln!(out, "  {command:width$}  {shows}")
        } else {
            writeln!(out, "  {command}\n      {shows}")
        };
    }
}

/// A word for a shell.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+@,=".contains(c);
    if word.chars().all(plain) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", escape(word).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_stay_one_word() {
        assert_eq!(shell_word("a/b.data"), "a/b.data");
        assert_eq!(shell_word("my file's"), "'my file'\\''s'");
    }
}

//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

pub mod arguments;
pub mod busiest;
pub(crate) mod call_graph;
pub(crate) mod groups;
pub mod heatmap;
pub mod histogram;
pub mod losses;
pub mod probes;
pub(crate) mod rate;
pub mod short_names;
pub mod shown_times;
pub mod spans;
pub(crate) mod spans_data;
pub(crate) mod suggestions;
pub(crate) mod summary_data;
pub(crate) mod text;
pub(crate) mod unnamed_frames;
pub mod unusual;

use std::io::Write;

use serde_json::Value;
use usdtrec_analysis::answer::{Answer, Facts};
use usdtrec_format::escape::escape_json;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::wall_times::WallTimes;

use crate::answer_style::AnswerStyle;
use crate::folded;
use crate::format::Format;
use crate::hints::HintWords;
use crate::report::shown_times::ShownTimes;
use crate::theme::Theme;

pub use crate::report::call_graph::CallGraphStyle;

/// How stacks are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StackStyle {
    /// As a tree.
    Tree(CallGraphStyle),
    /// As lines that flame graph programs read: the functions from the outermost one with `;` between, a blank, and the weight.
    Folded,
}

impl Default for StackStyle {
    fn default() -> Self {
        Self::Tree(CallGraphStyle::default())
    }
}

/// The form of an answer.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// How stacks look in text, and in CSV, which has no form for them.
    pub stacks: StackStyle,
    /// The format.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
    /// The words for hints; text only.
    pub hints: HintWords,
    /// The words that name the trace in command lines that lead on; `None` if there are none, as of what can be read only once. Text only.
    pub trace: Option<String>,
    /// What converts moments to times of day; `None` for seconds of the trace's clock. Text only.
    pub times_of_day: Option<WallTimes>,
    /// The room for text.
    pub room: TextRoom,
}

/// The room for a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRoom {
    /// Width of lines, columns; `None` for 80, where values beside names are whole.
    pub columns: Option<usize>,
    /// Number of lines, beyond which the slowest spans are left out; `None` for any number.
    pub lines: Option<usize>,
}

/// Writes an answer.
///
/// # Errors
/// [`ReportError::Write`] if `out` fails.
pub fn write(
    answer: &Answer,
    options: &ReportOptions,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let text = match options.format {
        Format::Text => in_text(&answer.facts, options),
        Format::Json => in_json(&answer.facts),
        format => in_csv(&answer.facts, format, options),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn in_text(facts: &Facts, options: &ReportOptions) -> String {
    let TextRoom { columns, lines } = options.room;
    let theme = Theme::new(options.colours).with_columns(columns);
    let style = AnswerStyle {
        theme,
        hints: options.hints,
        lines,
    };
    let times = ShownTimes::new(options.times_of_day.as_ref());
    match facts {
        Facts::Summary(facts) => text::render(facts, style, options.trace.as_deref()),
        Facts::Groups(grouped) => groups::text(grouped, style),
        Facts::Spans(report) => spans::render(report, style, &times),
        Facts::Histogram(found) => histogram::text(found, style),
        Facts::HeatMap(maps) => heatmap::text(maps, style, &times),
        Facts::Rate(rates) => rate::text(rates, theme),
        Facts::Stacks(stacks) => match options.stacks {
            StackStyle::Tree(graph) => call_graph::text(stacks, graph, style),
            StackStyle::Folded => folded::lines(stacks),
        },
    }
}

/// One JSON object a line, its members in the order of their names.
fn in_json(facts: &Facts) -> String {
    let objects = match json(facts) {
        Value::Array(objects) => objects,
        object => vec![object],
    };
    let lines = objects.iter().map(Value::to_string);
    lines
        .map(|line| escape_json(&line).into_owned() + "\n")
        .collect()
}

/// An answer as `report --format json` prints it: an object, or an array of those that are printed one a line.
#[must_use]
pub fn json(facts: &Facts) -> Value {
    match facts {
        Facts::Summary(facts) => summary_data::json(facts),
        Facts::Groups(grouped) => groups::json(grouped),
        Facts::Spans(report) => spans_data::json(report),
        Facts::Histogram(found) => histogram::json(found),
        Facts::HeatMap(maps) => heatmap::json(maps),
        Facts::Rate(rates) => rate::json(rates),
        Facts::Stacks(stacks) => call_graph::json(stacks),
    }
}

fn in_csv(facts: &Facts, format: Format, options: &ReportOptions) -> String {
    let csv = format.csv();
    match facts {
        Facts::Summary(facts) => summary_data::csv(csv, facts),
        Facts::Groups(grouped) => groups::csv(csv, grouped),
        Facts::Spans(report) => spans_data::csv(csv, report),
        Facts::Histogram(found) => histogram::csv(csv, found),
        Facts::HeatMap(maps) => heatmap::csv(csv, maps),
        Facts::Rate(rates) => rate::csv(csv, rates),
        Facts::Stacks(_) => in_text(facts, options),
    }
}

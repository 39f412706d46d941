//! `report`: a trace summed up. It answers first: what was recorded, which probes hit how often, what their
//! arguments hold, what was lost; then how to ask on.

pub mod arguments;
pub(crate) mod busiest;
pub(crate) mod call_graph;
pub(crate) mod data;
pub(crate) mod groups;
pub(crate) mod heatmap;
pub mod histogram;
pub mod losses;
pub(crate) mod next;
pub mod probes;
pub(crate) mod rate;
pub mod short_names;
pub mod spans;
pub(crate) mod spans_data;
pub(crate) mod text;
pub(crate) mod unnamed;
pub mod unusual;

use std::io::Write;

use usdtrec_analysis::answer::{Answer, Answered, answer};
use usdtrec_analysis::question::Question;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::answer_style::AnswerStyle;
use crate::folded;
use crate::format::Format;
use crate::hints::HintWords;
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

/// A question about a trace, and the form of the answer.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// The question.
    pub question: Question,
    /// How stacks look: they are shown as text in every format.
    pub stacks: StackStyle,
    /// Whether numbers with a unit are shown as times and amounts of memory.
    pub human: bool,
    /// The format.
    pub format: Format,
    /// Whether text has colours, by the escape sequences of terminals.
    pub colours: bool,
    /// The words for hints; text only.
    pub hints: HintWords,
}

/// Groups of spans that text shows if nothing is said; other formats have all.
const GROUPS: usize = 10;

/// Answers a question about the selected samples.
///
/// # Errors
/// [`ReportError::Question`] if the trace has no event or argument that is requested, [`ReportError::Write`] if `out` fails.
pub fn print(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ReportOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let groups = match options.format {
        Format::Text => GROUPS,
        Format::Json | Format::Csv | Format::CsvRaw => usize::MAX,
    };
    let Answered { answer, notices } = answer(session, selection, &options.question, groups)?;
    let text = match options.format {
        Format::Text => in_text(&answer, options),
        Format::Json => in_json(&answer, options),
        format => in_csv(&answer, format, options),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(notices)
}

fn in_text(answer: &Answer, options: &ReportOptions) -> String {
    let (theme, human) = (Theme::new(options.colours), options.human);
    let style = AnswerStyle {
        human,
        theme,
        hints: options.hints,
    };
    match answer {
        Answer::Summary(facts) => text::render(facts, style),
        Answer::Groups(grouped) => groups::text(grouped, style),
        Answer::Spans(report) => spans::render(report, style),
        Answer::Histogram(found) => histogram::text(found, style),
        Answer::HeatMap(maps) => heatmap::text(maps, style),
        Answer::Rate(rates) => rate::text(rates, human, theme),
        Answer::Stacks(stacks) => match options.stacks {
            StackStyle::Tree(graph) => call_graph::text(stacks, graph, style),
            StackStyle::Folded => folded::lines(stacks),
        },
    }
}

fn in_json(answer: &Answer, options: &ReportOptions) -> String {
    match answer {
        Answer::Summary(facts) => data::json(facts),
        Answer::Groups(grouped) => groups::json(grouped),
        Answer::Spans(report) => spans_data::json(report),
        Answer::Histogram(found) => histogram::json(found),
        Answer::HeatMap(maps) => heatmap::json(maps),
        Answer::Rate(rates) => rate::json(rates),
        Answer::Stacks(_) => in_text(answer, options),
    }
}

fn in_csv(answer: &Answer, format: Format, options: &ReportOptions) -> String {
    let csv = format.csv();
    match answer {
        Answer::Summary(facts) => data::csv(csv, facts),
        Answer::Groups(grouped) => groups::csv(csv, grouped),
        Answer::Spans(report) => spans_data::csv(csv, report),
        Answer::Histogram(found) => histogram::csv(csv, found),
        Answer::HeatMap(maps) => heatmap::csv(csv, maps),
        Answer::Rate(rates) => rate::csv(csv, rates),
        Answer::Stacks(_) => in_text(answer, options),
    }
}

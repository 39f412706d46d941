//! `flame`: stacks as a flame graph, in a picture or a page that need nothing else.

pub(crate) mod diff;
pub(crate) mod lines;
pub(crate) mod page;
pub(crate) mod recolour;
pub(crate) mod svg;

use std::io::Write;

use usdtrec_analysis::answer::{Answer, AnswerQuestions as _, Facts};
use usdtrec_analysis::question::{Question, StackKind, StackWeight};
use usdtrec_analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use usdtrec_format::escape::escape;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::flame::svg::Labels;
use crate::losses::words;
use crate::stack_remarks::stack_remarks;
use crate::weights;

pub use crate::flame::diff::print_diff;

/// What a flame graph is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlameFormat {
    /// An SVG file, which browsers show, search and zoom into.
    #[default]
    Svg,
    /// A page with the picture in it, which fits the window and is dark or light as the reader's system.
    Html,
}

/// What a flame graph shows, and how.
#[derive(Clone, Debug, Default)]
pub struct FlameOptions {
    /// What stacks weigh.
    pub weight: StackWeight,
    /// Which stacks.
    pub of: StackKind,
    /// The file format.
    pub format: FlameFormat,
}

/// Writes the flame graph of the selected samples.
///
/// # Errors
/// [`ReportError::Question`] if there are no stacks that have weight, or what is requested is not in the trace; [`ReportError::Write`] if `out` fails.
pub fn print(
    session: &TraceSession,
    selection: &EventSelection,
    options: &FlameOptions,
    out: &mut dyn Write,
) -> Result<Notices, ReportError> {
    let question = Question::Stacks {
        weight: options.weight.clone(),
        of: options.of,
    };
    let Answer { facts, notices } = session.answer(selection, &question)?;
    let Facts::Stacks(stacks) = facts else {
        return Err(QuestionError::NoStackWeight.into());
    };
    let lines = lines::reversed(&stacks)?;
    let picture = svg::draw(&lines, &labels(&stacks))?;
    let written = match options.format {
        FlameFormat::Svg => picture,
        FlameFormat::Html => page::around(&picture, &title(&stacks)),
    };
    out.write_all(written.as_bytes())?;
    out.flush()?;
    Ok(notices)
}

/// The title: which stacks are drawn.
fn title(stacks: &WeighedStacks) -> String {
    escape(&weights::title_of_all(&stacks.tables, &stacks.unit)).into_owned()
}

fn labels(stacks: &WeighedStacks) -> Labels {
    let origin = &stacks.origin;
    let host = match &*origin.host {
        "" => String::new(),
        host => format!("host {host}, "),
    };
    let remarks = stack_remarks(stacks).into_iter();
    let remarks: String = remarks.map(|words| format!("; {words}")).collect();
    Labels {
        title: title(stacks),
        subtitle: escape(&format!("{host}{}{remarks}", words(&stacks.losses))).into_owned(),
        unit: match &stacks.unit {
            WeightUnit::Hits => "hits".to_owned(),
            WeightUnit::Sum(name) => escape(name).into_owned(),
            WeightUnit::SpanTime => "ns".to_owned(),
        },
    }
}

//! `script`: a trace's samples, one line each, in the order of time.

pub(crate) mod arguments;
pub(crate) mod choice;
pub(crate) mod csv;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod location;
pub(crate) mod spans;
pub(crate) mod template;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod writer;

use std::io::Write;

use usdtrec_format::perf::Sample;

use crate::analysis::spans::matcher::OpenSpans;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::order::before::Before;
use crate::events::order::{Window, in_order};
use crate::events::selection::{Filter, Selection};
use crate::pool::Pool;
use crate::trace::session::Session;
use crate::trace::session::ids::Target;
pub use crate::view::script::choice::FieldChoice;
use crate::view::script::csv::{CsvLines, CsvStyle};
pub use crate::view::script::fields::{Field, Fields};
use crate::view::script::json::{JsonLines, JsonStyle};
pub use crate::view::script::live::{Live, live};
use crate::view::script::spans::{Hand, Shown, SpanColumn};
pub use crate::view::script::template::Template;
use crate::view::script::template::lines::TemplateLines;
use crate::view::script::template::style::TemplateStyle;
use crate::view::script::text::{TextLines, TextStyle};
pub use crate::view::script::times::Times;
use crate::view::script::writer::Writer;
use crate::view::text::buffer::Text;
use crate::view::text::quoted::Csv;

/// How output looks.
///
#[doc = include_str!("../../../FIELDS.md")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people, and for what reads perf's text.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
    /// Comma-separated values with a header line. A text that a spreadsheet would take for a formula has an apostrophe before it.
    Csv,
    /// Comma-separated values with all texts as they are.
    CsvRaw,
}

impl Format {
    /// How texts stand in CSV.
    pub(crate) const fn csv(self) -> Csv {
        match self {
            Self::CsvRaw => Csv::Raw,
            _ => Csv::Guarded,
        }
    }
}

/// How samples are printed.
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// Which fields.
    pub fields: FieldChoice,
    /// What times are counted from.
    pub times: Times,
    /// Whether text has times with nine digits behind the point, not six.
    pub nanoseconds: bool,
    /// Whether text has numbers with a unit as times and amounts of memory.
    pub human: bool,
    /// How it looks.
    pub format: Format,
    /// What each line is instead; fields and format do not matter then.
    pub template: Option<Template>,
}

/// Prints the samples that a selection asks for.
///
/// # Errors
/// [`ReportError::Ask`] if the trace has no event or argument that is asked for or does not tell the time of day that is, [`ReportError::Write`] if `out` fails.
pub fn script(
    session: &Session,
    selection: &Selection,
    options: &ScriptOptions,
    out: &mut (dyn Write + Send),
) -> Result<Notices, ReportError> {
    let filter = Filter::new(selection, session)?;
    let style = Style::new(session, &filter, options)?;
    if let Style::Csv(style) = &style {
        out.write_all(style.header().as_bytes())?;
    }
    let spans = SpanColumn::new(session, &filter, options)?;
    let hands = Pool::default();
    let renderers = Pool::default();
    let buffers = Pool::<Text>::default();
    let show = |window: Window<'_>| {
        let mut lines = renderers
            .take()
            .unwrap_or_else(|| Lines::new(session, &style));
        let mut text = buffers.take().unwrap_or_default();
        let shown = match &spans {
            Some(spans) => {
                let mut hand = hands.take().unwrap_or_else(|| Hand::new(session));
                let both = (&mut lines, &mut hand);
                let shown = spans.window((session, &filter), window, both, text);
                hands.put(hand);
                shown
            }
            None => {
                let short = lines.window(session, window, &mut text);
                Shown::new(text, short)
            }
        };
        renderers.put(lines);
        shown
    };
    let read = spans.as_ref().map(|spans| spans.relaxed(&filter));
    let mut open = OpenSpans::default();
    let mut notices = Notices::new(session);
    let outcome = std::thread::scope(|scope| {
        let mut writer = Writer::start(scope, out, &buffers);
        let outcome = in_order(session, read.as_ref().unwrap_or(&filter), show, |shown| {
            notices.unknown += shown.short;
            writer.write(match &spans {
                Some(spans) => spans.fill(shown, &mut open),
                None => shown.text,
            })
        });
        writer.finish()?;
        outcome.or(Ok::<_, ReportError>(
            crate::events::order::Outcome::default(),
        ))
    })?;
    notices.add(outcome);
    Ok(notices)
}

/// What is the same in all lines of a trace.
enum Style {
    Text(TextStyle),
    Json(JsonStyle),
    Csv(CsvStyle),
    Template(TemplateStyle),
}

impl Style {
    fn new(
        session: &Session,
        filter: &Filter,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        if let Some(template) = &options.template {
            let style = TemplateStyle::new(session, filter, (template, options))?;
            return Ok(Self::Template(style));
        }
        options.fields.arguments.check(session, filter)?;
        Ok(match options.format {
            Format::Text => Self::Text(TextStyle::new(session, options)?),
            Format::Json => Self::Json(JsonStyle::new(session, options)?),
            Format::Csv | Format::CsvRaw => Self::Csv(CsvStyle::new(session, filter, options)?),
        })
    }
}

/// Writes lines. One a thread.
pub(crate) enum Lines<'s> {
    Text(TextLines<'s>),
    Json(JsonLines<'s>),
    Csv(CsvLines<'s>),
    Template(TemplateLines<'s>),
}

impl<'s> Lines<'s> {
    fn new(session: &'s Session, style: &'s Style) -> Self {
        match style {
            Style::Text(style) => Self::Text(TextLines::new(session, style)),
            Style::Json(style) => Self::Json(JsonLines::new(session, style)),
            Style::Csv(style) => Self::Csv(CsvLines::new(session, style)),
            Style::Template(style) => Self::Template(TemplateLines::new(session, style)),
        }
    }

    /// Appends a sample's line.
    fn line(&mut self, target: Target, sample: &Sample<'_>, before: Before, out: &mut Text) {
        match self {
            Self::Text(lines) => lines.line(target, sample, before, out),
            Self::Json(lines) => lines.line(target, sample, before, out),
            Self::Csv(lines) => lines.line(target, sample, before, out),
            Self::Template(lines) => lines.line(target, sample, before, out),
        }
    }

    /// Appends the lines of a window; returns how many samples were too short for what their event says.
    fn window(&mut self, session: &Session, window: Window<'_>, out: &mut Text) -> u64 {
        match self {
            Self::Text(lines) => each(session, window, |target, sample, before| {
                lines.line(target, sample, before, out);
            }),
            Self::Json(lines) => each(session, window, |target, sample, before| {
                lines.line(target, sample, before, out);
            }),
            Self::Csv(lines) => each(session, window, |target, sample, before| {
                lines.line(target, sample, before, out);
            }),
            Self::Template(lines) => each(session, window, |target, sample, before| {
                lines.line(target, sample, before, out);
            }),
        }
    }
}

#[inline]
fn each(
    session: &Session,
    window: Window<'_>,
    mut line: impl FnMut(Target, &Sample<'_>, Before),
) -> u64 {
    let mut short = 0;
    let mut before = window.before;
    for body in window.bodies() {
        match session.sample(body) {
            Some((target, sample)) => {
                line(target, &sample, before);
                before.pass(sample.time);
            }
            None => short += 1,
        }
    }
    short
}

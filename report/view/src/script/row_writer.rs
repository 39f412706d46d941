//! Rows, which are events or spans, as lines of any format.

use std::collections::BTreeSet;

use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::Window;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::resolver::Resolver;

use crate::format::Format;
use crate::script::csv::{CsvLines, CsvStyle};
use crate::script::json::{JsonLines, JsonStyle};
use crate::script::options::ScriptOptions;
use crate::script::template::lines::TemplateLines;
use crate::script::template::style::TemplateStyle;
use crate::script::text::{TextLines, TextStyle};
use crate::text::buffer::Text;

/// Writes rows as lines of a format. One a thread.
pub(crate) trait RowWriter<'s> {
    /// What looks up the samples.
    fn resolver(&mut self) -> &mut Resolver<'s>;

    /// Appends the line of an event; `before` are the times of the lines before.
    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text);

    /// Appends the line of a span.
    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text);

    /// Appends the lines of a window; returns how many samples were too short for what their event says.
    fn window(&mut self, window: Window<'_>, out: &mut Text) -> u64 {
        let session = self.resolver().session();
        let (mut short, mut before) = (0, window.before);
        for (number, body) in window.bodies().enumerate() {
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                short += 1;
                continue;
            };
            self.resolver().set_context(window.context(number));
            let sample = &sample;
            self.event(Hit { target, sample }, before, out);
            before.pass(sample.time);
        }
        short
    }
}

/// A writer of any format.
pub(crate) type AnyWriter<'s> = Box<dyn RowWriter<'s> + Send + 's>;

/// Settings for all lines of a trace.
pub(crate) enum LineStyle {
    Text(TextStyle),
    Json(JsonStyle),
    Csv(CsvStyle),
    Template(TemplateStyle),
}

impl LineStyle {
    /// `pairs` are those of the spans, if these are the rows.
    ///
    /// # Errors
    /// [`ReportError::Question`] for fields that spans do not have, for arguments that no event has, and for the time of day where the trace
    /// does not have it.
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        pairs: &[Pair],
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        if let Some(template) = &options.template {
            let style = TemplateStyle::new(session, filter, pairs, template, options)?;
            return Ok(Self::Template(style));
        }
        if options.spans.is_some() {
            options.refuse_fields_of_events()?;
        }
        options.fields.arguments.check(session, filter)?;
        Ok(match options.format {
            Format::Text => Self::Text(TextStyle::new(session, pairs, options)?),
            Format::Json => Self::Json(JsonStyle::new(session, pairs, options)?),
            Format::Csv | Format::CsvRaw => {
                Self::Csv(CsvStyle::new(session, filter, pairs, options)?)
            }
        })
    }

    /// The line before all others, if there is one.
    pub(crate) fn header(&self) -> Option<String> {
        match self {
            Self::Csv(style) => Some(style.header()),
            _ => None,
        }
    }

    /// Takes the columns of a header that was printed before events were added. Returns the arguments for which it has no column.
    pub(crate) fn keep_columns(&mut self, printed: &Self) -> BTreeSet<String> {
        match (self, printed) {
            (Self::Csv(new), Self::Csv(printed)) => new.keep_columns(printed),
            _ => BTreeSet::new(),
        }
    }

    /// The calls of scripts, if their functions are shown.
    pub(crate) fn calls(&self) -> Option<&ScriptCalls> {
        match self {
            Self::Text(style) => style.calls.as_deref(),
            Self::Json(style) => style.calls.as_deref(),
            Self::Csv(_) | Self::Template(_) => None,
        }
    }

    /// A writer of such lines.
    pub(crate) fn writer<'s>(&'s self, session: &'s TraceSession) -> AnyWriter<'s> {
        match self {
            Self::Text(style) => Box::new(TextLines::new(session, style)),
            Self::Json(style) => Box::new(JsonLines::new(session, style)),
            Self::Csv(style) => Box::new(CsvLines::new(session, style)),
            Self::Template(style) => Box::new(TemplateLines::new(session, style)),
        }
    }
}

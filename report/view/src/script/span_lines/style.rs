//! How the lines of spans are written, in any format.

use std::collections::BTreeSet;

use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::fields::{FIELDS, Field, Fields};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::format::Format;
use crate::script::options::ScriptOptions;
use crate::script::span_lines::csv::SpanCsv;
use crate::script::span_lines::json::SpanJson;
use crate::script::span_lines::line_times::LineTimes;
use crate::script::span_lines::template::SpanTemplate;
use crate::script::span_lines::text::SpanText;
use crate::script::times::TimesOfDay;
use crate::text::buffer::Text;

/// Those that text has if nothing is said.
const USUAL: Fields = Fields::from_slice(&[
    Field::Comm,
    Field::Tid,
    Field::Cpu,
    Field::Time,
    Field::Event,
    Field::Span,
    Field::Args,
]);

/// Settings for all lines of spans.
pub(crate) enum SpanStyle {
    Text(SpanText),
    Json(SpanJson),
    Csv(SpanCsv),
    Template(SpanTemplate),
}

impl SpanStyle {
    /// # Errors
    /// [`ReportError::Question`] for fields that spans do not have, for arguments that no event has, and for the time of day where the trace
    /// does not have it.
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        if let Some(template) = &options.template {
            let style = SpanTemplate::new(session, pairs, template, options)?;
            return Ok(Self::Template(style));
        }
        let fields = fields_of(options)?;
        let all = SampleFilter::new(&EventSelection::default(), session)?;
        options.fields.arguments.check(session, &all)?;
        Ok(match options.format {
            Format::Text => Self::Text(SpanText::new(session, pairs, fields, options)?),
            Format::Json => Self::Json(SpanJson::new(session, pairs, fields, options)),
            Format::Csv | Format::CsvRaw => {
                Self::Csv(SpanCsv::new(session, pairs, fields, options))
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

    /// What writes times of day; `None` if none are shown.
    pub(crate) fn times_of_day(&self) -> Option<TimesOfDay<'_>> {
        let clock = match self {
            Self::Text(style) => &style.clock,
            Self::Template(style) => &style.clock,
            Self::Json(_) | Self::Csv(_) => return None,
        };
        clock.as_ref().map(TimesOfDay::new)
    }

    /// Appends the line of a span.
    pub(crate) fn line(
        &self,
        session: &TraceSession,
        span: &SpanRow<'_>,
        times: &mut LineTimes<'_>,
        out: &mut Text,
    ) {
        match self {
            Self::Text(style) => style.line(session, span, times, out),
            Self::Json(style) => style.line(session, span, out),
            Self::Csv(style) => style.line(session, span, out),
            Self::Template(style) => style.line(session, span, times, out),
        }
    }
}

/// The fields that are shown.
fn fields_of(options: &ScriptOptions) -> Result<Fields, ReportError> {
    let fields = options.fields.apply(USUAL);
    let mut others = FIELDS
        .iter()
        .filter(|spec| fields.has(spec.field) && !Fields::OF_SPANS.has(spec.field));
    match others.next() {
        Some(spec) => Err(QuestionError::FieldOfEvents { field: spec.name }.into()),
        None => Ok(fields),
    }
}

//! How rows are written, in any format.

use std::collections::BTreeSet;

use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::session::TraceSession;

use crate::format::Format;
use crate::script::csv::{CsvLines, CsvStyle};
use crate::script::json::{JsonLines, JsonStyle};
use crate::script::options::ScriptOptions;
use crate::script::row_writer::AnyWriter;
use crate::script::template::lines::TemplateLines;
use crate::script::template::style::TemplateStyle;
use crate::script::text::{TextLines, TextStyle};

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

//! Lines of any format.

use usdtrec_format::perf::Sample;
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::Window;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::hit_context::HitContext;
use usdtrec_trace::session::ids::SampleTarget;

use crate::format::Format;
use crate::script::csv::{CsvLines, CsvStyle};
use crate::script::json::{JsonLines, JsonStyle};
use crate::script::options::ScriptOptions;
use crate::script::template::lines::TemplateLines;
use crate::script::template::style::TemplateStyle;
use crate::script::text::{TextLines, TextStyle};
use crate::text::buffer::Text;

/// Settings for all lines of a trace.
pub(crate) enum LineStyle {
    Text(TextStyle),
    Json(JsonStyle),
    Csv(CsvStyle),
    Template(TemplateStyle),
}

impl LineStyle {
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        if let Some(template) = &options.template {
            let style = TemplateStyle::new(session, filter, template, options)?;
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

impl LineStyle {
    /// The calls of scripts, if their functions are shown.
    pub(crate) fn calls(&self) -> Option<&ScriptCalls> {
        match self {
            Self::Text(style) => style.calls.as_deref(),
            Self::Json(style) => style.calls.as_deref(),
            Self::Csv(_) | Self::Template(_) => None,
        }
    }
}

/// Writes lines. One a thread.
pub(crate) enum LineWriter<'s> {
    Text(TextLines<'s>),
    Json(JsonLines<'s>),
    Csv(CsvLines<'s>),
    Template(TemplateLines<'s>),
}

impl<'s> LineWriter<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s LineStyle) -> Self {
        match style {
            LineStyle::Text(style) => Self::Text(TextLines::new(session, style)),
            LineStyle::Json(style) => Self::Json(JsonLines::new(session, style)),
            LineStyle::Csv(style) => Self::Csv(CsvLines::new(session, style)),
            LineStyle::Template(style) => Self::Template(TemplateLines::new(session, style)),
        }
    }

    /// Says what is known of the next sample from others.
    pub(crate) fn set_context(&mut self, context: HitContext<'_>) {
        match self {
            Self::Text(lines) => lines.resolver.set_context(context),
            Self::Json(lines) => lines.resolver.set_context(context),
            Self::Csv(lines) => lines.resolver.set_context(context),
            Self::Template(lines) => lines.resolver.set_context(context),
        }
    }

    /// Appends a sample's line.
    pub(crate) fn line(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        match self {
            Self::Text(lines) => lines.line(target, sample, before, out),
            Self::Json(lines) => lines.line(target, sample, before, out),
            Self::Csv(lines) => lines.line(target, sample, before, out),
            Self::Template(lines) => lines.line(target, sample, before, out),
        }
    }

    /// Appends the lines of a window; returns how many samples were too short for what their event says.
    pub(crate) fn window(
        &mut self,
        session: &TraceSession,
        window: Window<'_>,
        out: &mut Text,
    ) -> u64 {
        match self {
            Self::Text(lines) => each(session, window, |hit, before, context| {
                lines.resolver.set_context(context);
                lines.line(hit.target, hit.sample, before, out);
            }),
            Self::Json(lines) => each(session, window, |hit, before, context| {
                lines.resolver.set_context(context);
                lines.line(hit.target, hit.sample, before, out);
            }),
            Self::Csv(lines) => each(session, window, |hit, before, context| {
                lines.resolver.set_context(context);
                lines.line(hit.target, hit.sample, before, out);
            }),
            Self::Template(lines) => each(session, window, |hit, before, context| {
                lines.resolver.set_context(context);
                lines.line(hit.target, hit.sample, before, out);
            }),
        }
    }
}

#[inline]
fn each(
    session: &TraceSession,
    window: Window<'_>,
    mut line: impl FnMut(Hit<'_>, PreviousTimes, HitContext<'_>),
) -> u64 {
    let mut short = 0;
    let mut before = window.before;
    for (number, body) in window.bodies().enumerate() {
        match session.sample(body) {
            Some(parsed) => {
                let hit = Hit {
                    target: parsed.target,
                    sample: &parsed.sample,
                };
                line(hit, before, window.context(number));
                before.pass(parsed.sample.time);
            }
            None => short += 1,
        }
    }
    short
}

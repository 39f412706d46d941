//! One line for each span, with the arguments of its begin and of its end.
//!
//! A line is made when the span has ended, so lines are in the order of the ends.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk, SpanRowQuestion};
use usdtrec_analysis::rows::span_stream::{SpanStream, stream_selection};
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::{Notices, SpanOverlap};
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{SpanTotals, StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::process::hit_names::HitNames;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::{Sources, TraceSession};

use crate::script::line_style::LineStyle;
use crate::script::options::{ScriptOptions, StreamOutput};
use crate::script::row_writer::AnyWriter;
use crate::text::buffer::Text;

/// Settings for the lines of spans of these pairs.
fn style(
    session: &TraceSession,
    pairs: &[Pair],
    options: &ScriptOptions,
) -> Result<LineStyle, ReportError> {
    let all = SampleFilter::new(&EventSelection::default(), session)?;
    LineStyle::new(session, &all, pairs, options)
}

/// Prints the spans of a trace.
///
/// # Errors
/// The errors of [`print`](crate::script::print).
pub(crate) fn print_spans(
    session: &TraceSession,
    selection: &EventSelection,
    question: &SpanRowQuestion,
    options: &ScriptOptions,
    out: &mut (dyn Write + Send),
) -> Result<Notices, ReportError> {
    let walk = RowWalk::new(session, selection, &RowQuestion::from(question))?;
    let style = style(session, &walk.pairs, options)?;
    if let Some(header) = style.header() {
        out.write_all(header.as_bytes())?;
    }
    let mut before = PreviousTimes::default();
    let mut notices = Notices::new(session);
    let mut writer = SpanWriter::new(session, &style, &mut before, out);
    let walk = walk.at_least(question.least, question.least_parts)?;
    walk.run(&mut writer, &mut notices)?;
    writer.finish()?;
    Ok(notices)
}

/// Prints the spans of a stream, until it ends.
///
/// # Errors
/// The errors of [`print_stream`](crate::script::print_stream).
pub(crate) fn print_span_stream(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    selection: &EventSelection,
    question: &SpanRowQuestion,
    options: &ScriptOptions,
    to: StreamOutput<'_>,
) -> Result<StreamSummary, ReportError> {
    let mut totals = SpanTotals::default();
    let mut overlaps = Vec::new();
    let all = stream_selection(selection);
    let mut summary = watch(
        input,
        path,
        sources,
        &all,
        &ContextQuestion::default(),
        |session, _| {
            let spans = SpanStream::new(session, selection, question.clone())?;
            let style = style(session, &spans.pairs, options)?;
            if let Some(header) = style.header() {
                to.out.write_all(header.as_bytes())?;
            }
            Ok(SpanPrinter {
                options,
                style,
                spans: Some(spans),
                before: PreviousTimes::default(),
                to,
                totals: &mut totals,
                overlaps: &mut overlaps,
            })
        },
    )?;
    summary.notices.add_forgotten(totals.forgotten);
    summary.notices.overlaps = overlaps;
    summary.spans = Some(totals);
    Ok(summary)
}

/// Prints spans.
struct SpanPrinter<'a, 't> {
    options: &'a ScriptOptions,
    style: LineStyle,
    /// `None` when the stream has ended.
    spans: Option<SpanStream>,
    before: PreviousTimes,
    to: StreamOutput<'t>,
    totals: &'a mut SpanTotals,
    overlaps: &'a mut Vec<SpanOverlap>,
}

impl StreamView for SpanPrinter<'_, '_> {
    fn show(&mut self, samples: StreamSamples<'_>) -> Result<(), ReportError> {
        let Some(spans) = &mut self.spans else {
            return Ok(());
        };
        let session = samples.session;
        let mut worker = spans.worker(session);
        spans.begin_window(session)?;
        let mut writer = SpanWriter::new(session, &self.style, &mut self.before, self.to.out);
        samples.each(
            |target, sample| match spans.has_role(target.event as usize) {
                true => spans.sample(&mut worker, Hit { target, sample }, &mut writer),
                false => Ok(()),
            },
        )?;
        spans.end_window(&mut worker, &mut writer)?;
        writer.finish()?;
        Ok(())
    }

    fn renew_pauses(&mut self, session: &TraceSession) {
        if let Some(spans) = &mut self.spans {
            spans.renew_pauses(session);
        }
    }

    fn add_events(
        &mut self,
        session: &TraceSession,
        _: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError> {
        let Some(spans) = &mut self.spans else {
            return Ok(BTreeSet::new());
        };
        spans.add_events(session)?;
        let mut style = style(session, &spans.pairs, self.options)?;
        let hidden = style.keep_columns(&self.style);
        self.style = style;
        Ok(hidden)
    }

    fn kept_names(&mut self) -> Vec<HitNames<'_>> {
        let spans = self.spans.as_mut();
        spans.map_or_else(Vec::new, SpanStream::kept_names)
    }

    fn lose(&mut self, session: &TraceSession, event: Option<usize>, lost: u64) {
        self.to.lose(session, event, lost);
    }

    fn end(&mut self, session: &TraceSession) -> Result<(), ReportError> {
        if let Some(mut spans) = self.spans.take() {
            *self.overlaps = spans.overlaps();
            let mut writer = SpanWriter::new(session, &self.style, &mut self.before, self.to.out);
            *self.totals = spans.end(&mut writer)?;
            writer.finish()?;
        }
        Ok(())
    }
}

/// Bytes of text that are written at once.
pub(crate) const WRITE: usize = 256 << 10;

/// Writes a line for each span.
pub(crate) struct SpanWriter<'a> {
    lines: AnyWriter<'a>,
    /// The lines before.
    before: &'a mut PreviousTimes,
    text: Text,
    out: &'a mut dyn Write,
}

impl<'a> SpanWriter<'a> {
    /// Continues after the lines of `before`.
    pub(crate) fn new(
        session: &'a TraceSession,
        style: &'a LineStyle,
        before: &'a mut PreviousTimes,
        out: &'a mut dyn Write,
    ) -> Self {
        Self {
            lines: style.writer(session),
            before,
            text: Text::default(),
            out,
        }
    }

    /// Writes what waits.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.text.len() > 0 {
            self.write()?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_slice())?;
        self.text.clear();
        Ok(())
    }
}

impl RowSink for SpanWriter<'_> {
    fn event(&mut self, _: RowHit<'_>, _: RowSide) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        self.lines.span(&span, *self.before, &mut self.text);
        self.before.pass(span.last().row.time);
        match self.text.len() >= WRITE {
            true => self.write(),
            false => Ok(()),
        }
    }
}

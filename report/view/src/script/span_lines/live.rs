//! Lines of the spans of a stream, while it is written.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_analysis::rows::span_question::SpanRowQuestion;
use usdtrec_analysis::rows::span_stream::{SpanStream, stream_selection};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::SpanOverlap;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{SpanTotals, StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::process::hit_names::HitNames;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::{Sources, TraceSession};

use crate::script::options::ScriptOptions;
use crate::script::span_lines::style::SpanStyle;
use crate::script::span_lines::writer::SpanWriter;
use crate::script::stream_output::StreamOutput;

/// Prints the spans of a stream, until it ends.
///
/// # Errors
/// Those of [`print_stream`](crate::script::print_stream).
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
            let style = SpanStyle::new(session, &spans.pairs, options)?;
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
    style: SpanStyle,
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
        let mut style = SpanStyle::new(session, &spans.pairs, self.options)?;
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

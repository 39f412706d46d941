//! `script` of a stream while it is written.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_analysis::spans::ends::EndsWorker;
use usdtrec_analysis::spans::matcher::OpenSpans;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::SpanOverlap;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::events::Event;
use usdtrec_trace::session::{Sources, TraceSession};

use crate::script::line_style::LineStyle;
use crate::script::options::{ScriptOptions, StreamOutput};
use crate::script::span_lines::{WRITE, print_span_stream};
use crate::script::spans::{SpanColumn, WindowText};
use crate::text::buffer::Text;

/// Prints the selected samples of a stream, until it ends. `path` is what the stream is called; `context` says which
/// arguments events get besides their own.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream of ours or of `perf record -o -`; [`ReportError::Question`] if it has no event that is
/// requested or does not have the time of day that is, for a part of its length, which is not known, or for stacks without inlined functions if it
/// has no stacks; [`ReportError::Write`] if it cannot be printed.
pub fn print_stream<'a>(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    selection: &EventSelection,
    context: &ContextQuestion,
    options: &'a ScriptOptions,
    to: StreamOutput<'a>,
) -> Result<StreamSummary, ReportError> {
    if let Some(question) = &options.spans {
        return print_span_stream(input, path, sources, selection, question, options, to);
    }
    let mut overlaps = Vec::new();
    let mut summary = watch(
        input,
        path,
        sources,
        selection,
        context,
        |session, filter| {
            if sources.no_inline && !session.events().events.iter().any(Event::has_chain) {
                let what = "leaving out inlined functions".to_owned();
                return Err(QuestionError::NoStacks { what }.into());
            }
            let spans = SpanColumn::new(session, filter, options)?;
            let style = LineStyle::new(session, filter, &[], options)?;
            if let Some(header) = style.header() {
                to.out.write_all(header.as_bytes())?;
            }
            Ok(Printer {
                options,
                style,
                open: spans
                    .as_ref()
                    .map_or_else(OpenSpans::default, |spans| spans.ends.open()),
                spans,
                before: PreviousTimes::default(),
                text: Text::default(),
                to,
                overlaps: &mut overlaps,
            })
        },
    )?;
    summary.notices.overlaps = overlaps;
    Ok(summary)
}

/// Prints samples.
struct Printer<'a, 't> {
    options: &'a ScriptOptions,
    style: LineStyle,
    spans: Option<SpanColumn>,
    /// Beginnings that wait for their end.
    open: OpenSpans<()>,
    /// The lines that were shown before.
    before: PreviousTimes,
    text: Text,
    to: StreamOutput<'a>,
    /// The spans that overlap on their threads, when the stream has ended.
    overlaps: &'t mut Vec<SpanOverlap>,
}

impl StreamView for Printer<'_, '_> {
    fn show(&mut self, samples: StreamSamples<'_>) -> Result<(), ReportError> {
        let mut lines = self.style.writer(samples.session);
        let mut worker = EndsWorker::new(
            samples.session,
            self.spans.as_ref().map(|spans| &spans.ends),
        );
        let mut shown = WindowText::new(std::mem::take(&mut self.text), 0);
        let (spans, open) = (self.spans.as_ref(), &mut self.open);
        let (before, out) = (&mut self.before, &mut *self.to.out);
        let mut wrote = false;
        let mut write = |shown: &mut WindowText, worker: &mut EndsWorker<'_>| {
            let mut shown = std::mem::take(shown);
            shown.end(worker);
            let mut text = match spans {
                Some(spans) => spans.fill(shown, open),
                None => shown.text,
            };
            wrote |= text.len() > 0;
            out.write_all(text.as_slice())?;
            text.clear();
            Ok::<_, ReportError>(text)
        };
        samples.each_with(
            |event| spans.is_some_and(|spans| spans.ends.has_role(event)),
            |hit, context, asked| {
                let line = asked.then(|| shown.text.len());
                if asked {
                    lines.resolver().set_context(context);
                    lines.event(hit, *before, &mut shown.text);
                    before.pass(hit.sample.time);
                }
                if let Some(spans) = spans {
                    spans.sample(&mut worker, hit, line, &mut shown);
                }
                if shown.text.len() >= WRITE {
                    shown = WindowText::new(write(&mut shown, &mut worker)?, 0);
                }
                Ok(())
            },
        )?;
        self.text = write(&mut shown, &mut worker)?;
        if wrote {
            out.flush()?;
        }
        Ok(())
    }

    fn renew_pauses(&mut self, session: &TraceSession) {
        if let Some(spans) = &mut self.spans {
            spans.ends.renew_pauses(session, &mut self.open);
        }
    }

    fn add_events(
        &mut self,
        session: &TraceSession,
        filter: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError> {
        let mut style = LineStyle::new(session, filter, &[], self.options)?;
        let hidden = style.keep_columns(&self.style);
        self.style = style;
        if let Some(spans) = &mut self.spans {
            spans.add_events(session, filter);
            spans.ends.renew_pauses(session, &mut self.open);
        }
        Ok(hidden)
    }

    fn lose(&mut self, session: &TraceSession, event: Option<usize>, lost: u64) {
        self.to.lose(session, event, lost);
    }

    fn end(&mut self, _: &TraceSession) -> Result<(), ReportError> {
        if let Some(spans) = &self.spans {
            *self.overlaps = spans.ends.overlaps();
        }
        Ok(())
    }
}
